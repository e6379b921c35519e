//! The C++ between a Verilated model and Rust: a few functions with plain types, generated for the design's ports.

use super::build::Recipe;
use heddle_hdl::netlist::Module;
use std::fmt::Write;

/// A port of the model.
pub struct Pin {
    pub name: String,
    pub width: u32,
}

/// The model's input pins, and its output pins: outputs, then probes if the recipe has them.
pub fn pins(top: &Module, recipe: Recipe) -> (Vec<Pin>, Vec<Pin>) {
    let pin = |name: &str, width| Pin { name: name.to_string(), width };
    let inputs = top.inputs.iter().map(|p| pin(&p.name, p.width)).collect();
    let outputs = top.outputs.iter().map(|p| pin(&p.name, p.width));
    let probes = if recipe.probes { heddle_gen::cosim_probes(top) } else { Vec::new() };
    let probes = probes.into_iter().map(|p| Pin { name: p.name, width: p.width });
    (inputs, outputs.chain(probes).collect())
}

/// The source of the shim. A cycle is two evaluations; the loop over cycles is here, so that long runs cross no boundary.
pub fn source(top: &Module, recipe: Recipe) -> String {
    let (inputs, outputs) = pins(top, recipe);
    let (mut set, mut get, mut stop) = (String::new(), String::new(), String::new());
    for (k, Pin { name, width }) in inputs.iter().enumerate() {
        let _ = match width {
            ..=64 => writeln!(set, "        case {k}: m->{name} = limbs[0]; break;"),
            _ => writeln!(
                set,
                "        case {k}: for (int i = 0; i < {}; i++) m->{name}[i] = limbs[i / 2] >> (i % 2 * 32); break;",
                width.div_ceil(32)
            ),
        };
    }
    for (k, Pin { name, width }) in outputs.iter().enumerate() {
        let _ = match width {
            ..=64 => writeln!(get, "        case {k}: limbs[0] = m->{name}; break;"),
            _ => writeln!(
                get,
                "        case {k}: for (int i = 0; i < {}; i++) limbs[i / 2] |= (uint64_t)m->{name}[i] << (i % 2 * 32); break;",
                width.div_ceil(32)
            ),
        };
        let _ = match width {
            ..=64 => writeln!(stop, "        case {k}: return m->{name} != 0;"),
            _ => Ok(()),
        };
    }
    let defines = if recipe.trace { "#define TRACE 1\n#include \"verilated_vcd_c.h\"\n" } else { "#define TRACE 0\n" };
    format!("{HEAD}{defines}{MODEL}{}{set}{}{get}{}{stop}{TAIL}", SET, GET, STOP)
}

const HEAD: &str = r#"#include "Vmodel.h"
#include "verilated.h"
#include <cstdint>
"#;

const MODEL: &str = r#"
// Rust's side of the DPI functions.
struct Host {
    void* data;
    int32_t (*open)(void*, const char*);
    uint32_t (*word)(void*, int32_t, int32_t, int32_t);
    int32_t (*request)(void*, int32_t);
    int32_t (*writes)(void*, int32_t);
    void (*report)(void*, int32_t, int32_t, uint32_t);
};

struct Model {
    VerilatedContext context;
    Vmodel* top;
    uint64_t time = 0;
#if TRACE
    VerilatedVcdC* wave = nullptr;
#endif
    void eval() {
        top->eval();
#if TRACE
        if (wave) wave->dump(time);
#endif
    }
};

static thread_local const Host* host = nullptr;

double sc_time_stamp() { return 0; }

extern "C" {
int heddle_open(const char* path) { return host->open(host->data, path); }
int heddle_word(int handle, int index, int limb) { return host->word(host->data, handle, index, limb); }
int heddle_request(int handle) { return host->request(host->data, handle); }
int heddle_writes(int handle) { return host->writes(host->data, handle); }
void heddle_report(int handle, int limb, int value) { host->report(host->data, handle, limb, value); }

Model* model_new(const Host* h) {
    host = h;
    Model* model = new Model;
#if TRACE
    model->context.traceEverOn(true);
#endif
    model->top = new Vmodel(&model->context, "TOP");
    model->top->clk = 0;
    model->top->rst = 0;
    model->top->host = 0;
    model->top->eval();
    return model;
}

void model_free(Model* model) {
#if TRACE
    if (model->wave) {
        model->wave->close();
        delete model->wave;
    }
#endif
    model->top->final();
    delete model->top;
    delete model;
}

void model_trace(Model* model, const char* path, uint64_t time) {
#if TRACE
    model->time = time;
    model->wave = new VerilatedVcdC;
    model->top->trace(model->wave, 99);
    model->wave->open(path);
#endif
}

void model_reset(Model* model, int on) { model->top->rst = on; }
void model_settle(Model* model) { model->top->eval(); }

void model_host(Model* model, const Host* h) {
    host = h;
    model->top->host = 1;
    model->top->eval();
    model->top->host = 0;
    model->top->eval();
}
"#;

const SET: &str = r#"
void model_set(Model* model, int pin, const uint64_t* limbs) {
    Vmodel* m = model->top;
    switch (pin) {
"#;

const GET: &str = r#"    }
}

void model_get(Model* model, int pin, uint64_t* limbs) {
    Vmodel* m = model->top;
    switch (pin) {
"#;

const STOP: &str = r#"    }
}

static int is_on(Vmodel* m, int pin) {
    switch (pin) {
"#;

const TAIL: &str = r#"    }
    return 0;
}

uint64_t model_run(Model* model, uint64_t cycles, int pin, int* stopped) {
    Vmodel* m = model->top;
    *stopped = 0;
    for (uint64_t cycle = 1; cycle <= cycles; cycle++) {
        m->clk = 0;
        model->eval();
        model->time += 5;
        int last = pin >= 0 && is_on(m, pin);
        m->clk = 1;
        model->eval();
        model->time += 5;
        if (last) {
            *stopped = 1;
            return cycle;
        }
    }
    return cycles;
}
}
"#;
