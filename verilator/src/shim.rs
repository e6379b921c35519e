//! The C++ between a model and Rust: a few functions with plain types, generated for the model's ports.

use crate::ports::{Direction, Port};
use std::fmt::Write;

/// The source of the shim. A cycle is two evaluations of the clock's member; the loop over cycles is here, so that long
/// runs cross no boundary.
pub(crate) fn source(ports: &[Port], clock: Option<&Port>, wave: bool) -> String {
    let (mut set, mut get, mut on, mut list) = (String::new(), String::new(), String::new(), String::new());
    for (k, Port { name, direction, width, member }) in ports.iter().enumerate() {
        let words = width.div_ceil(32);
        let _ = match (direction, width) {
            (Direction::Output, _) => Ok(()),
            (_, ..=64) => writeln!(set, "        case {k}: m->{member} = limbs[0]; break;"),
            _ => writeln!(
                set,
                "        case {k}: for (int i = 0; i < {words}; i++) m->{member}[i] = limbs[i / 2] >> (i % 2 * 32); break;"
            ),
        };
        let _ = match width {
            ..=64 => writeln!(get, "        case {k}: limbs[0] = m->{member}; break;"),
            _ => writeln!(
                get,
                "        case {k}: for (int i = 0; i < {words}; i++) limbs[i / 2] |= (uint64_t)m->{member}[i] << (i % 2 * 32); break;"
            ),
        };
        let _ = match width {
            ..=64 => writeln!(on, "        case {k}: return m->{member} != 0;"),
            _ => Ok(()),
        };
        let letter = if *direction == Direction::Input { 'i' } else { 'o' };
        let _ = write!(list, "{letter} {width} {name}\\n");
    }
    let wave = if wave { "#define WAVE 1\n#include \"verilated_vcd_c.h\"\n" } else { "#define WAVE 0\n" };
    let clock = match clock {
        Some(port) => format!("#define CLOCK(level) m->{} = level\n", port.member),
        None => "#define CLOCK(level)\n".to_string(),
    };
    format!("{HEAD}{wave}{clock}{MODEL}{SET}{set}{GET}{get}{ON}{on}{TAIL}{LIST}\"{list}\";\n")
}

/// All of it that is the same for every model: builds of another shim are others.
pub(crate) const TEMPLATE: [&str; 7] = [HEAD, MODEL, SET, GET, ON, TAIL, LIST];

const HEAD: &str = r#"#include "Vmodel.h"
#include "verilated.h"
#include "verilated_syms.h"
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
"#;

const MODEL: &str = r#"
struct Model {
    VerilatedContext context;
    Vmodel* top = nullptr;
    uint64_t time = 0;
    // Why the Verilog stopped; empty while it has not.
    std::string stopped;
#if WAVE
    VerilatedVcdC* wave = nullptr;
#endif
    void close() {
#if WAVE
        if (wave) {
            wave->close();
            delete wave;
            wave = nullptr;
        }
#endif
    }
};

// The model that is evaluated: Verilator's hooks do not say which.
static thread_local Model* current = nullptr;

static std::string at(const char* file, int line, const std::string& what) {
    return (file && *file ? std::string(file) + ":" + std::to_string(line) + ": " : "") + what;
}

void vl_finish(const char*, int, const char*) { current->context.gotFinish(true); }

void vl_stop(const char* file, int line, const char*) {
    if (current->stopped.empty()) current->stopped = at(file, line, "$stop, or an assertion that failed");
}

// Whoever calls this does not expect it to return, as where logic never settles.
void vl_fatal(const char* file, int line, const char*, const char* what) {
    throw std::runtime_error(at(file, line, what));
}

static void evaluate(Model* model) {
    current = model;
    try {
        model->top->eval();
    } catch (const std::runtime_error& error) {
        if (model->stopped.empty()) model->stopped = error.what();
    }
}

// Evaluates, shows it in the waveform, and lets so much time pass.
static void advance(Model* model, uint64_t time) {
    evaluate(model);
#if WAVE
    if (model->wave) model->wave->dump(model->time);
#endif
    model->time += time;
    model->context.time(model->time);
}

double sc_time_stamp() { return 0; }

template <class V> static auto width_of(const V& var, int) -> decltype(var.entBits()) { return var.entBits(); }
template <class V> static uint32_t width_of(const V& var, long) { return var.dims() > var.udims() ? var.packed().elements() : 1; }

extern "C" {
Model* model_new() {
    Model* model = new Model;
    current = model;
#if WAVE
    model->context.traceEverOn(true);
#endif
    model->top = new Vmodel(&model->context, "TOP");
    evaluate(model);
    return model;
}

void model_free(Model* model) {
    current = model;
    // Scopes leave the context of the thread, which may be that of another model.
    Verilated::threadContextp(&model->context);
    model->close();
    model->top->final();
    delete model->top;
    delete model;
}

int model_wave(Model* model, const char* path) {
#if WAVE
    model->close();
    model->wave = new VerilatedVcdC;
    model->top->trace(model->wave, 99);
    model->wave->open(path);
    return model->wave->isOpen();
#else
    return 0;
#endif
}

void model_eval(Model* model) { evaluate(model); }
void model_advance(Model* model, uint64_t time) { advance(model, time); }
int model_finished(Model* model) { return model->context.gotFinish(); }
const char* model_stopped(Model* model) { return model->stopped.empty() ? nullptr : model->stopped.c_str(); }

// A variable that is public, and how many words of how many bits it has.
const VerilatedVar* model_find(Model* model, const char* scope, const char* name, uint64_t* words, uint32_t* width) {
    const VerilatedScope* found = model->context.scopeFind(scope);
    const VerilatedVar* var = found ? found->varFind(name) : nullptr;
    if (var) {
        *words = var->totalSize() / var->entSize();
        *width = width_of(*var, 0);
    }
    return var;
}

void model_word(const VerilatedVar* var, uint64_t index, uint64_t* limbs, int write) {
    const size_t size = var->entSize();
    char* word = static_cast<char*>(var->datap()) + index * size;
    // The host is little endian, as every machine is that this loads on.
    if (write) memcpy(word, limbs, size);
    else memcpy(limbs, word, size);
}
"#;

const SET: &str = r#"
void model_set(Model* model, int port, const uint64_t* limbs) {
    Vmodel* m = model->top;
    switch (port) {
"#;

const GET: &str = r#"    }
}

void model_get(Model* model, int port, uint64_t* limbs) {
    Vmodel* m = model->top;
    switch (port) {
"#;

const ON: &str = r#"    }
}

static int is_on(Vmodel* m, int port) {
    switch (port) {
"#;

const TAIL: &str = r#"    }
    return 0;
}

uint64_t model_run(Model* model, uint64_t cycles, int port, int* ended) {
    Vmodel* m = model->top;
    *ended = 0;
    for (uint64_t cycle = 1; cycle <= cycles; cycle++) {
        CLOCK(0);
        advance(model, 5);
        int last = port >= 0 && is_on(m, port);
        CLOCK(1);
        advance(model, 5);
        if (last || !model->stopped.empty()) {
            *ended = last;
            return cycle;
        }
    }
    return cycles;
}
}
"#;

/// The ports, for whoever loads the library without its header.
const LIST: &str = "\nextern \"C\" const char model_ports[] = ";
