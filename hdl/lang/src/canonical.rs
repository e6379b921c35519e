//! The canonical hash of a design's hardware: two designs that are the same machine, written in different ways, have
//! the same.
//!
//! What counts: the top's ports by their names, every bit of state and what it becomes, contents of memories and the
//! kind of storage asked for, values that are kept, and names and parameters of foreign Verilog. What does not:
//! hierarchy, the names of everything but the top's ports, how bits are put together into signals, registers and words
//! of memory, and what serves properties and probes only; but [`hash_with_properties`] counts properties. Of logic,
//! these are alike:
//!
//! * constants are folded; operands of `&`, `|`, `^`, `+` and `*` may be swapped; inversions move through `&`, `|`, `^`
//!   and choices;
//! * a choice with a constant is an AND or an OR; a comparison with `==`, a reduction and a `case` are what they are
//!   bit by bit;
//! * a register with an enable is one that may keep its value.
//!
//! So a difference is not always one of behaviour: `a & (b & c)` and `(a & b) & c` differ. And two limits of equality:
//! of bits that no output, number or constant tells apart, it is not seen which is meant; and a hash has 64 bits.
//!
//! **How.** Every bit has a *colour*, a hash. At first that of a bit of state says only what it starts from. Then,
//! round by round, it becomes the hash of the colours that its next value is made of, until no round tells apart two
//! bits that the round before did not: colour refinement, as is done to compare graphs. The hash is that of the
//! outputs' colours.

use crate::bits::Bits;
use crate::netlist::{Collision, Memory, MemoryStyle, Module, NodeId, Op, Property, ReadTiming};
use crate::order::{Loop, Order, Piece, order};
use std::collections::HashSet;
use std::sync::Arc;

/// The canonical hash of the hardware of a design; its combinational loop, if there is one.
pub fn hash(top: &Arc<Module>) -> Result<u64, Loop> {
    hash_of(top, false)
}

/// The canonical hash of a design's hardware and of what its [properties](Module::properties) say, by their names: what
/// proofs of it are of.
pub fn hash_with_properties(top: &Arc<Module>) -> Result<u64, Loop> {
    hash_of(top, true)
}

fn hash_of(top: &Arc<Module>, properties: bool) -> Result<u64, Loop> {
    let order = order(top)?;
    let mut colours = Colours::new(&order, properties);
    let mut classes = 0;
    loop {
        colours.combinational();
        let next = colours.next_states();
        let now = next.iter().collect::<HashSet<_>>().len();
        colours.states = next;
        if now <= classes {
            break;
        }
        classes = now;
    }
    colours.combinational();
    Ok(colours.of_design(top))
}

type Colour = u64;

/// Of the constant 0. The colours of a value and of its inverse differ in all bits.
const ZERO: Colour = 0x9e37_79b9_7f4a_7c15;
const ONE: Colour = !ZERO;

/// What a colour is of, beside its parts.
#[derive(Clone, Copy)]
#[repr(u64)]
enum Kind {
    Input = 1,
    Output,
    Register,
    Column,
    Read,
    SyncRead,
    Write,
    And,
    Xor,
    Mux,
    Word,
    Bit,
    Foreign,
    Kept,
    Property,
}

fn mix(a: Colour, b: Colour) -> Colour {
    let product = u128::from(a ^ 0xa076_1d64_78bd_642f) * u128::from(b.rotate_left(29) ^ 0xe703_7ed1_a0b4_28db);
    let folded = (product as u64 ^ (product >> 64) as u64).wrapping_add(a.rotate_left(17)) ^ b;
    (folded ^ folded >> 32).wrapping_mul(0x8ebc_6af0_9c88_c6e3)
}

fn of(kind: Kind, parts: impl IntoIterator<Item = Colour>) -> Colour {
    parts.into_iter().fold(mix(kind as u64, ZERO), mix)
}

/// Of several bits together.
fn of_word(bits: &[Colour]) -> Colour {
    of(Kind::Word, bits.iter().copied())
}

/// Of a name or another text.
fn of_text(text: &str) -> Colour {
    text.bytes().fold(mix(text.len() as u64, ONE), |colour, byte| mix(colour, byte.into()))
}

/// Values of one colour may differ, so only constants are folded.
fn and(a: Colour, b: Colour) -> Colour {
    match (a, b) {
        (ZERO, _) | (_, ZERO) => ZERO,
        (ONE, other) | (other, ONE) => other,
        _ => of(Kind::And, [a.min(b), a.max(b)]),
    }
}

fn or(a: Colour, b: Colour) -> Colour {
    !and(!a, !b)
}

fn xor(a: Colour, b: Colour) -> Colour {
    match (a, b) {
        (ZERO, other) | (other, ZERO) => other,
        (ONE, other) | (other, ONE) => !other,
        _ => {
            // Of a value and its inverse, the lesser stands for both.
            let [x, y] = [a.min(!a), b.min(!b)];
            let colour = of(Kind::Xor, [x.min(y), x.max(y)]);
            if (x == a) == (y == b) { colour } else { !colour }
        }
    }
}

fn mux(selector: Colour, on: Colour, off: Colour) -> Colour {
    match (selector, on, off) {
        (ONE, ..) => on,
        (ZERO, ..) => off,
        (_, _, ZERO) => and(selector, on),
        (_, ZERO, _) => and(!selector, off),
        (_, ONE, _) => or(selector, off),
        (_, _, ONE) => or(!selector, on),
        _ if selector > !selector => mux(!selector, off, on),
        // The inverse of a choice is a choice of inverses.
        _ if on > !on => !of(Kind::Mux, [selector, !on, !off]),
        _ => of(Kind::Mux, [selector, on, off]),
    }
}

fn constant(bit: bool) -> Colour {
    if bit { ONE } else { ZERO }
}

fn equal(a: &[Colour], b: &[Colour]) -> Colour {
    a.iter().zip(b).fold(ONE, |all, (&a, &b)| and(all, !xor(a, b)))
}

fn is(word: &[Colour], label: &Bits) -> Colour {
    let bits = word.iter().enumerate();
    bits.fold(ONE, |all, (k, &bit)| and(all, if label.bit(k as u32) { bit } else { !bit }))
}

/// A bit of state, or what is like one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Register {
        scope: u32,
        register: u32,
        bit: u32,
    },
    /// A bit of all words of a memory.
    Column {
        scope: u32,
        memory: u32,
        bit: u32,
    },
    /// What a synchronous read holds.
    SyncRead {
        scope: u32,
        memory: u32,
        port: u32,
        bit: u32,
    },
}

/// Where the colours of a scope's state begin.
struct Places {
    registers: Vec<u32>,
    columns: Vec<u32>,
    /// For each memory, of each port; nothing in use for an asynchronous one.
    reads: Vec<Vec<u32>>,
}

struct Colours<'a> {
    order: &'a Order,
    /// Where the bits of each unit begin.
    starts: Vec<usize>,
    bits: Vec<Colour>,
    state: Vec<State>,
    states: Vec<Colour>,
    places: Vec<Places>,
    /// Units and state that the outputs depend on.
    needed: Vec<bool>,
    needed_state: Vec<bool>,
    /// What properties say counts, too.
    properties: bool,
}

impl<'a> Colours<'a> {
    fn new(order: &'a Order, properties: bool) -> Colours<'a> {
        let mut starts = Vec::with_capacity(order.units.len());
        let mut total = 0;
        for unit in &order.units {
            starts.push(total);
            total += unit.width as usize;
        }
        let (mut state, mut places) = (Vec::new(), Vec::new());
        for (scope, module) in order.scopes.iter().enumerate() {
            let scope = scope as u32;
            let mut begin = |bits: &mut dyn Iterator<Item = State>| {
                let start = state.len() as u32;
                state.extend(bits);
                start
            };
            let registers = (0..).zip(&module.registers);
            let registers = registers
                .map(|(register, r)| begin(&mut (0..r.width).map(|bit| State::Register { scope, register, bit })));
            let registers = registers.collect();
            let columns = (0..).zip(&module.memories);
            let columns =
                columns.map(|(memory, m)| begin(&mut (0..m.width).map(|bit| State::Column { scope, memory, bit })));
            let columns = columns.collect();
            let reads = (0..).zip(&module.memories).map(|(memory, m)| {
                let ports = (0..).zip(&m.reads);
                let ports = ports
                    .map(|(port, _)| begin(&mut (0..m.width).map(|bit| State::SyncRead { scope, memory, port, bit })));
                ports.collect()
            });
            let reads = reads.collect();
            places.push(Places { registers, columns, reads });
        }
        let (needed, needed_state) = (vec![false; order.units.len()], vec![false; state.len()]);
        let (bits, states) = (vec![0; total], Vec::new());
        let mut colours = Colours { order, starts, bits, state, states, places, needed, needed_state, properties };
        colours.find_needed();
        colours.states = colours.state.iter().map(|state| colours.first(*state)).collect();
        colours
    }

    fn module(&self, scope: u32) -> &'a Module {
        &self.order.scopes[scope as usize]
    }

    fn memory(&self, scope: u32, memory: u32) -> &'a Memory {
        &self.module(scope).memories[memory as usize]
    }

    /// Marks all that the outputs depend on, from cycle to cycle.
    fn find_needed(&mut self) {
        let top = self.module(0);
        let outputs = top.outputs.iter().map(|output| output.node).chain(top.reset);
        let mut units: Vec<usize> = outputs.map(|node| self.order.unit(0, node)).collect();
        // Of every module that has some: what is kept is part of the hardware.
        for (scope, module) in self.order.scopes.iter().enumerate() {
            let kept = module.kept.iter().copied();
            units.extend(kept.chain(self.said_by(module)).map(|node| self.order.unit(scope, node)));
        }
        while let Some(unit) = units.pop() {
            if std::mem::replace(&mut self.needed[unit], true) {
                continue;
            }
            let found = &self.order.units[unit];
            units.extend(found.args.iter().map(|piece| piece.unit as usize));
            let module = self.module(found.scope);
            let places = &self.places[found.scope as usize];
            let mut nodes: Vec<NodeId> = Vec::new();
            match module.node(found.node).op {
                Op::Reg(register) => {
                    let r = &module.registers[register as usize];
                    nodes.extend([r.next].into_iter().chain(r.enable));
                    let start = places.registers[register as usize] as usize;
                    self.needed_state[start..start + r.width as usize].fill(true);
                }
                Op::MemRead { mem, port } => {
                    let memory = &module.memories[mem as usize];
                    let read = &memory.reads[port as usize];
                    nodes.push(read.address);
                    if let ReadTiming::Sync { enable, .. } = read.timing {
                        nodes.extend(enable);
                        let start = places.reads[mem as usize][port as usize] as usize;
                        self.needed_state[start..start + memory.width as usize].fill(true);
                    }
                    nodes.extend(memory.writes.iter().flat_map(|write| [write.enable, write.address, write.data]));
                    let start = places.columns[mem as usize] as usize;
                    self.needed_state[start..start + memory.width as usize].fill(true);
                }
                _ => {}
            }
            units.extend(nodes.into_iter().map(|node| self.order.unit(found.scope as usize, node)));
        }
    }

    /// The values of properties that count.
    fn said_by(&self, module: &'a Module) -> impl Iterator<Item = NodeId> + use<'a> {
        let properties: &[Property] = if self.properties { &module.properties } else { &[] };
        properties.iter().map(|property| property.node)
    }

    /// What a bit of state starts from.
    fn first(&self, state: State) -> Colour {
        match state {
            State::Register { scope, register, bit } => {
                let reset = &self.module(scope).registers[register as usize].reset;
                of(Kind::Register, reset.iter().map(|bits| constant(bits.bit(bit))))
            }
            State::Column { scope, memory, bit } => {
                let memory = self.memory(scope, memory);
                let style = match memory.style {
                    MemoryStyle::Auto => 1,
                    MemoryStyle::Block => 2,
                    MemoryStyle::Distributed => 3,
                };
                let shape = [style, memory.address_width.into()];
                let init = memory.init.iter().flatten().map(|word| constant(word.bit(bit)));
                of(Kind::Column, shape.into_iter().chain(init))
            }
            State::SyncRead { .. } => of(Kind::SyncRead, []),
        }
    }

    fn whole(&self, scope: u32, node: NodeId) -> &[Colour] {
        let unit = self.order.unit(scope as usize, node);
        &self.bits[self.starts[unit]..][..self.order.units[unit].width as usize]
    }

    fn word(&self, scope: u32, node: NodeId) -> Colour {
        of_word(self.whole(scope, node))
    }

    fn piece(&self, piece: Piece) -> &[Colour] {
        &self.bits[self.starts[piece.unit as usize] + piece.low as usize..][..piece.width as usize]
    }

    /// The colours of all values, from those of the state.
    fn combinational(&mut self) {
        for k in 0..self.order.units.len() {
            if self.needed[k] {
                let colours = self.unit(k);
                self.bits[self.starts[k]..][..colours.len()].copy_from_slice(&colours);
            }
        }
    }

    fn unit(&self, number: usize) -> Vec<Colour> {
        let unit = &self.order.units[number];
        let module = self.module(unit.scope);
        let node = module.node(unit.node);
        let width = unit.width as usize;
        let arg = |k: usize| self.piece(unit.args[k]);
        let bit_by_bit = |f: fn(Colour, Colour) -> Colour| arg(0).iter().zip(arg(1)).map(|(&a, &b)| f(a, b)).collect();
        let folded = |start: Colour, f: fn(Colour, Colour) -> Colour| vec![arg(0).iter().fold(start, |a, &b| f(a, b))];
        let places = &self.places[unit.scope as usize];
        let states = |start: u32| self.states[start as usize..][..width].to_vec();
        match &node.op {
            Op::Const(value) => (0..unit.width).map(|bit| constant(value.bit(bit))).collect(),
            Op::Input(port) if unit.scope == 0 => {
                let name = of_text(&module.inputs[*port as usize].name);
                (0..unit.width).map(|bit| of(Kind::Input, [name, bit.into()])).collect()
            }
            Op::Buf | Op::Slice(_) | Op::Cat | Op::ZExt | Op::InstOut { .. } | Op::Input(_) => {
                let mut all: Vec<Colour> = unit.args.iter().flat_map(|&piece| self.piece(piece)).copied().collect();
                all.resize(width, ZERO);
                all
            }
            Op::SExt => {
                let mut all = arg(0).to_vec();
                all.resize(width, *all.last().expect("a value has bits"));
                all
            }
            Op::Reg(register) => states(places.registers[*register as usize]),
            Op::MemRead { mem, port } => {
                let columns = places.columns[*mem as usize];
                match self.memory(unit.scope, *mem).reads[*port as usize].timing {
                    ReadTiming::Sync { .. } => states(places.reads[*mem as usize][*port as usize]),
                    ReadTiming::Async => {
                        let address = of_word(arg(0));
                        states(columns).into_iter().map(|column| of(Kind::Read, [column, address])).collect()
                    }
                }
            }
            Op::Not => arg(0).iter().map(|&a| !a).collect(),
            Op::And => bit_by_bit(and),
            Op::Or => bit_by_bit(or),
            Op::Xor => bit_by_bit(xor),
            Op::Mux => arg(1).iter().zip(arg(2)).map(|(&on, &off)| mux(arg(0)[0], on, off)).collect(),
            Op::Case(labels) => {
                let mut arms: Vec<(&Bits, usize)> = labels.iter().zip(2..).collect();
                arms.sort();
                let begin = arg(1).to_vec();
                arms.into_iter().fold(begin, |rest, (label, k)| {
                    let chosen = is(arg(0), label);
                    arg(k).iter().zip(rest).map(|(&on, off)| mux(chosen, on, off)).collect()
                })
            }
            Op::Eq => vec![equal(arg(0), arg(1))],
            Op::Ne => vec![!equal(arg(0), arg(1))],
            Op::Any => folded(ZERO, or),
            Op::All => folded(ONE, and),
            Op::Parity => folded(ZERO, xor),
            op => {
                let code = of_text(op_name(op));
                let mut words: Vec<Colour> = unit.args.iter().map(|&piece| of_word(self.piece(piece))).collect();
                if matches!(op, Op::Add | Op::Mul | Op::MulFull | Op::MulFullSigned) {
                    words.sort_unstable();
                }
                let word = of(Kind::Word, [code].into_iter().chain(words));
                (0..unit.width).map(|bit| of(Kind::Bit, [word, bit.into()])).collect()
            }
        }
    }

    /// The colours of the state a round later.
    fn next_states(&self) -> Vec<Colour> {
        self.state
            .iter()
            .enumerate()
            .map(|(k, state)| if self.needed_state[k] { self.next(k, *state) } else { 0 })
            .collect()
    }

    fn next(&self, number: usize, state: State) -> Colour {
        let now = self.states[number];
        match state {
            State::Register { scope, register, bit } => {
                let register = &self.module(scope).registers[register as usize];
                let next = self.whole(scope, register.next)[bit as usize];
                let enable = register.enable.map_or(ONE, |enable| self.whole(scope, enable)[0]);
                of(Kind::Register, [now, mux(enable, next, now)])
            }
            State::Column { scope, memory, bit } => {
                let memory = self.memory(scope, memory);
                let writes = memory.writes.iter().map(|write| {
                    let enables = self.whole(scope, write.enable);
                    let enable = enables[bit as usize * enables.len() / memory.width as usize];
                    of(
                        Kind::Write,
                        [enable, self.word(scope, write.address), self.whole(scope, write.data)[bit as usize]],
                    )
                });
                of(Kind::Column, [now].into_iter().chain(writes))
            }
            State::SyncRead { scope, memory: number, port, bit } => {
                let memory = self.memory(scope, number);
                let read = &memory.reads[port as usize];
                let ReadTiming::Sync { enable, collision, or_zero } = read.timing else { return 0 };
                let column = self.states[(self.places[scope as usize].columns[number as usize] + bit) as usize];
                let timing = match collision {
                    Collision::ReadOld => 1,
                    Collision::ReadNew => 2,
                    Collision::Never => 3,
                };
                let enable = enable.map_or(ONE, |enable| self.whole(scope, enable)[0]);
                let or_zero = constant(or_zero);
                of(Kind::SyncRead, [now, timing, or_zero, enable, self.word(scope, read.address), column])
            }
        }
    }

    fn of_design(&self, top: &Module) -> u64 {
        let outputs =
            top.outputs.iter().map(|output| of(Kind::Output, [of_text(&output.name), self.word(0, output.node)]));
        let inputs = top.inputs.iter().map(|input| of(Kind::Input, [of_text(&input.name), input.width.into()]));
        let reset = top.reset.iter().map(|&node| of(Kind::Output, [self.word(0, node)]));
        let mut of_modules = Vec::new();
        for (scope, module) in self.order.scopes.iter().enumerate() {
            of_modules.extend(module.kept.iter().map(|&node| of(Kind::Kept, [self.word(scope as u32, node)])));
            of_modules.extend(self.said_by(module).zip(&module.properties).map(|(node, property)| {
                let name = of_text(&format!("{:?} {}", property.kind, property.name));
                of(Kind::Property, [name, self.word(scope as u32, node)])
            }));
            of_modules.extend(module.foreign.iter().map(|foreign| {
                let said = format!("{:?} {:?} {:?}", foreign.name, foreign.parameters, foreign.attributes);
                of(Kind::Foreign, [of_text(&said)])
            }));
        }
        of_modules.sort_unstable();
        let mut ports: Vec<Colour> = inputs.chain(outputs).collect();
        ports.sort_unstable();
        of(Kind::Word, ports.into_iter().chain(reset).chain(of_modules))
    }
}

/// Of an operation that is taken as a whole.
fn op_name(op: &Op) -> &'static str {
    match op {
        Op::Add => "add",
        Op::Sub => "sub",
        Op::Mul => "mul",
        Op::MulFull => "mul full",
        Op::MulFullSigned => "mul full signed",
        Op::Shl => "shl",
        Op::Shr => "shr",
        Op::Sar => "sar",
        Op::Lt => "lt",
        Op::LtSigned => "lt signed",
        Op::Select => "select",
        Op::CountOnes => "count ones",
        _ => "poison",
    }
}

#[cfg(test)]
mod tests;
