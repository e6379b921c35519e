use super::arithmetic::multiply_or_divide;
use super::*;
use crate::asm;

const VECADD: &[u8] = include_bytes!("../../programs/elf/vecadd.elf");

/// A machine of one thread that runs the given words in place of vecadd's.
fn machine(words: &[u32]) -> Iss {
    let program = Program::parse(VECADD).unwrap();
    let mut iss = Iss::new(&program, &with_all(1, 1)).unwrap();
    put(&mut iss, words);
    iss
}

/// Puts the words in place of the first instructions.
fn put(iss: &mut Iss, words: &[u32]) {
    let decoded = words.iter().map(|&word| Instruction::decode(word, &iss.shape));
    iss.instructions.splice(..words.len(), decoded.collect::<Vec<_>>());
}

/// A shape with all that is optional.
fn with_all(lanes: u32, warps: u32) -> Shape {
    Shape { atomics: true, barriers: true, scratchpad: 1024, ..Shape::new(lanes, warps) }
}

/// The cause that a single instruction stops with, when every register but x0 holds `value`.
fn cause(word: u32, value: u32) -> Option<Cause> {
    let mut iss = machine(&[word]);
    iss.harts[0].registers[1..].fill(value);
    iss.step(0).err().map(|fault| fault.cause)
}

#[test]
fn faults_have_causes() {
    let cases = [
        (0x0000_0000, 0, Cause::Illegal(0)),
        (0x0010_0073, 0, Cause::Breakpoint),
        (0x0000_0073, 64, Cause::Ecall(64)),
        (0x3020_0073, 0, Cause::Illegal(0x3020_0073)),               // mret
        (0x0000_200f, 0, Cause::Illegal(0x0000_200f)),               // a fence of another kind
        (0x3000_2573, 0, Cause::Illegal(0x3000_2573)),               // csrr a0,mstatus
        (0xf140_1073, 0, Cause::Illegal(0xf140_1073)),               // csrw mhartid,zero
        (0xf140_a573, 0, Cause::Illegal(0xf140_a573)),               // csrrs a0,mhartid,ra
        (0xf140_d573, 0, Cause::Illegal(0xf140_d573)),               // csrrwi a0,mhartid,1
        (0x0020_006f, 0, Cause::MisalignedJump(2)),                  // j 2
        (0x0000_8067, 6, Cause::MisalignedJump(6)),                  // ret
        (0x0020_2503, 0, Cause::MisalignedLoad(2)),                  // lw a0,2(zero)
        (0x0000_9503, 0xffff, Cause::MisalignedLoad(0xffff)),        // lh a0,0(ra)
        (0x0000_a503, 0xc000_0000, Cause::LoadOutside(0xc000_0000)), // lw a0,0(ra)
        (0x0000_a023, 0x10001, Cause::MisalignedStore(0x10001)),     // sw zero,0(ra)
        (0x0000_8023, 0xffff_ffff, Cause::StoreOutside(0xffff_ffff)), // sb zero,0(ra)
        (0x0000_2023, 0, Cause::StoreToProgram(0)),                  // sw zero,0(zero)
    ];
    for (word, value, expected) in cases {
        assert_eq!(cause(word, value), Some(expected), "{word:#010x}");
    }
}

#[test]
fn reads_of_csrs_and_fences_are_fine() {
    // csrr a0,mhartid; csrrsi a0,mhartid,0; csrrc a0,cycle,zero; fence; fence.tso; fence.i
    for word in [0xf140_2573, 0xf140_6573, 0xc000_3573, 0x0ff0_000f, 0x8330_000f, 0x0000_100f] {
        assert_eq!(cause(word, 0), None, "{word:#010x}");
    }
}

#[test]
fn a_fetch_outside_program_memory_is_the_targets_fault() {
    // lui ra,0x80000; ret
    let mut iss = machine(&[0x8000_00b7, 0x0000_8067]);
    iss.step(0).unwrap();
    iss.step(0).unwrap();
    let fault = iss.step(0).unwrap_err();
    assert_eq!((fault.cause, fault.pc), (Cause::FetchOutside, 0x8000_0000));
    assert_eq!(fault.to_string(), "thread 0 of block 0 at pc 0x80000000: instruction fetch outside program memory");
}

#[test]
fn division_follows_the_manual_at_its_edges() {
    let least = i32::MIN as u32;
    assert_eq!(multiply_or_divide(4, 7, 0), u32::MAX);
    assert_eq!(multiply_or_divide(5, 7, 0), u32::MAX);
    assert_eq!(multiply_or_divide(6, 7, 0), 7);
    assert_eq!(multiply_or_divide(7, 7, 0), 7);
    assert_eq!(multiply_or_divide(4, least, u32::MAX), least);
    assert_eq!(multiply_or_divide(6, least, u32::MAX), 0);
    assert_eq!(multiply_or_divide(4, -7i32 as u32, 2), -3i32 as u32);
    assert_eq!(multiply_or_divide(6, -7i32 as u32, 2), -1i32 as u32);
}

/// x3 after one instruction, with x1 and x2 given.
fn x3(word: u32, x1: u32, x2: u32) -> u32 {
    let mut iss = machine(&[word]);
    iss.hart_mut(0).set_register(1, x1);
    iss.hart_mut(0).set_register(2, x2);
    iss.step(0).unwrap();
    iss.hart(0).register(3)
}

#[test]
fn shifts_take_five_bits_of_the_amount() {
    let [sll, srl, sra] = [(0, 1), (0, 5), (0x20, 5)].map(|(funct7, funct3)| asm::r(funct7, 2, 1, funct3, 3, 0x33));
    for (amount, left, right, signed) in [
        (0, 0x8000_0001, 0x8000_0001, 0x8000_0001),
        (1, 2, 0x4000_0000, 0xc000_0000),
        (31, 0x8000_0000, 1, u32::MAX),
        (32, 0x8000_0001, 0x8000_0001, 0x8000_0001),
        (33, 2, 0x4000_0000, 0xc000_0000),
        (u32::MAX, 0x8000_0000, 1, u32::MAX),
    ] {
        assert_eq!([sll, srl, sra].map(|word| x3(word, 0x8000_0001, amount)), [left, right, signed], "{amount}");
    }
    let immediate = |funct7, funct3, by| x3(asm::r(funct7, by, 1, funct3, 3, 0x13), 0x8000_0001, 0);
    assert_eq!([immediate(0, 1, 31), immediate(0, 5, 31), immediate(0x20, 5, 31)], [0x8000_0000, 1, u32::MAX]);
    assert_eq!([immediate(0, 1, 0), immediate(0, 5, 0), immediate(0x20, 5, 0)], [0x8000_0001; 3]);
    assert_eq!(x3(asm::r(0x20, 31, 1, 5, 3, 0x13), 0x7fff_ffff, 0), 0, "srai of a positive number");
}

/// slt, sltu, slti, sltiu and all branches on pairs whose order depends on the sign.
#[test]
fn compares_are_signed_or_not() {
    let least = i32::MIN as u32;
    // Operands, signed less, unsigned less.
    for (a, b, signed, unsigned) in [
        (0, 0, false, false),
        (least, least, false, false),
        (0, u32::MAX, false, true),
        (u32::MAX, 0, true, false),
        (least, 0x7fff_ffff, true, false),
        (0x7fff_ffff, least, false, true),
        (u32::MAX - 1, u32::MAX, true, true),
    ] {
        let compare = |funct3| x3(asm::r(0, 2, 1, funct3, 3, 0x33), a, b) == 1;
        assert_eq!([compare(2), compare(3)], [signed, unsigned], "{a:#x} {b:#x}");
        let taken = |funct3| {
            let mut iss = machine(&[asm::r(0, 2, 1, funct3, 8, 0x63)]); // over one instruction
            iss.hart_mut(0).set_register(1, a);
            iss.hart_mut(0).set_register(2, b);
            iss.step(0).unwrap();
            iss.hart(0).pc() == 8
        };
        assert_eq!([0, 1].map(taken), [a == b, a != b], "{a:#x} {b:#x}");
        assert_eq!([4, 5, 6, 7].map(taken), [signed, !signed, unsigned, !unsigned], "{a:#x} {b:#x}");
    }
    let [slti, sltiu] = [2, 3].map(|funct3| asm::addi(3, 1, -1) | funct3 << 12);
    assert_eq!([x3(slti, 0, 0), x3(slti, least, 0), x3(sltiu, 0, 0), x3(sltiu, u32::MAX, 0)], [0, 1, 1, 0]);
}

#[test]
fn immediates_are_sign_extended_at_their_extremes() {
    for (imm, value) in [(-2048, 0xffff_f800), (2047, 0x7ff), (-1, u32::MAX)] {
        assert_eq!(x3(asm::addi(3, 0, imm), 0, 0), value);
        let [xori, ori, andi] = [4, 6, 7].map(|funct3| asm::addi(3, 1, imm) | funct3 << 12);
        assert_eq!([x3(xori, 0, 0), x3(ori, 0, 0), x3(andi, u32::MAX, 0)], [value; 3]);
        // The base is far enough from both ends of memory.
        let base = 0x2_0000u32;
        let address = base.wrapping_add(value) & !3;
        for word in [asm::load(0, 3, 1, imm), asm::store(0, 3, 1, imm)] {
            let mut iss = machine(&[word]);
            iss.hart_mut(0).set_register(1, base);
            assert_eq!(iss.step(0).unwrap().access.unwrap().address & !3, address, "{word:#010x}");
        }
    }
    assert_eq!([x3(asm::lui(3, 0xfffff), 0, 0), x3(asm::lui(3, 0x7ffff), 0, 0)], [0xffff_f000, 0x7fff_f000]);
    let mut iss = machine(&[asm::NOP, asm::lui(3, 0xfffff) & !0x7f | 0x17]); // auipc
    iss.step(0).unwrap();
    assert_eq!(iss.step(0).unwrap().rd, Some((3, 0xffff_f004)));
}

/// Branches reach from -4096 to 4094 bytes, jal from -1048576 to 1048574, each multiple of 2 by its own bit.
#[test]
fn offsets_of_jumps_reach_their_extremes() {
    // The target of a taken branch or jump at address 0, whether it can be fetched or not.
    let target = |word: u32| {
        let mut iss = machine(&[word]);
        match iss.step(0) {
            Err(Fault { cause: Cause::MisalignedJump(to), .. }) => to,
            stepped => stepped.map(|_| iss.hart(0).pc()).unwrap(),
        }
    };
    let beq = |bits: u32| target(bits | 0x63);
    assert_eq!(beq(0x8000_0000), -4096i32 as u32);
    assert_eq!(beq(0x7e00_0f80), 4094);
    assert_eq!(beq(0xfe00_0f80), -2i32 as u32);
    let places = [(8, 2), (9, 4), (10, 8), (11, 16), (25, 32), (28, 256), (30, 1024), (7, 2048)];
    places.into_iter().for_each(|(bit, offset)| assert_eq!(beq(1 << bit), offset, "bit {bit}"));
    let jal = |bits: u32| target(bits | 0x6f);
    assert_eq!(jal(0x8000_0000), -0x10_0000i32 as u32);
    assert_eq!(jal(0x7fff_f000), 0xf_fffe);
    assert_eq!(jal(0xffff_f000), -2i32 as u32);
    let places = [(21, 2), (22, 4), (30, 1024), (20, 2048), (12, 4096), (19, 0x8_0000)];
    places.into_iter().for_each(|(bit, offset)| assert_eq!(jal(1 << bit), offset, "bit {bit}"));
}

#[test]
fn jalr_clears_the_lowest_bit_and_may_use_its_base_as_link() {
    for (base, imm, to) in [(0x101, 0, 0x100), (0x100, 1, 0x100), (0x101, -1, 0x100), (0x103, 1, 0x104), (1, -1, 0)] {
        let mut iss = machine(&[asm::jalr(1, 1, imm)]);
        iss.hart_mut(0).set_register(1, base);
        assert_eq!(iss.step(0).unwrap().rd, Some((1, 4)));
        assert_eq!(iss.hart(0).pc(), to, "{base:#x} {imm}");
    }
    assert_eq!(cause(asm::jalr(1, 1, -1), 0x104), Some(Cause::MisalignedJump(0x102)));
}

/// Each size at each offset; what is misaligned changes nothing.
#[test]
fn accesses_are_aligned_to_their_size() {
    let base = 0x2_0000;
    for (funct3, bytes) in [(0, 1), (1, 2), (2, 4), (4, 1), (5, 2)] {
        for offset in 0..8 {
            let address = base + offset;
            let aligned = offset % bytes == 0;
            let want = (!aligned).then_some(Cause::MisalignedLoad(address));
            assert_eq!(cause(asm::load(funct3, 3, 1, offset as i32), base), want, "load {funct3} at {address:#x}");
            if funct3 < 4 {
                let mut iss = machine(&[asm::store(funct3, 2, 1, 0)]);
                iss.hart_mut(0).set_register(1, address);
                iss.hart_mut(0).set_register(2, u32::MAX);
                let stored = iss.step(0).map_err(|fault| fault.cause);
                assert_eq!(stored.err(), (!aligned).then_some(Cause::MisalignedStore(address)));
                let ones = iss.memory()[base as usize..base as usize + 12].iter().filter(|&&b| b == 0xff).count();
                assert_eq!(ones, if aligned { bytes as usize } else { 0 });
            }
        }
    }
}

#[test]
fn loads_extend_as_they_say() {
    let word = 0x80ff_7f81u32;
    for (funct3, offset, value) in [
        (0, 0, 0xffff_ff81),
        (0, 1, 0x7f),
        (0, 2, u32::MAX),
        (4, 0, 0x81),
        (4, 2, 0xff),
        (1, 0, 0x7f81),
        (1, 2, 0xffff_80ff),
        (5, 2, 0x80ff),
        (2, 0, word),
    ] {
        let mut iss = machine(&[asm::load(funct3, 3, 1, offset)]);
        iss.write(0x2_0000, &word.to_le_bytes()).unwrap();
        iss.hart_mut(0).set_register(1, 0x2_0000);
        assert_eq!(iss.step(0).unwrap().rd, Some((3, value)), "{funct3} {offset}");
    }
}

#[test]
fn high_products_respect_signs() {
    let minus_one = u32::MAX;
    assert_eq!(multiply_or_divide(1, minus_one, minus_one), 0);
    assert_eq!(multiply_or_divide(2, minus_one, minus_one), minus_one);
    assert_eq!(multiply_or_divide(3, minus_one, minus_one), minus_one - 1);
    let least = i32::MIN as u32;
    assert_eq!([1, 2, 3].map(|funct3| multiply_or_divide(funct3, least, least)), [1 << 30, 0xc000_0000, 1 << 30]);
    assert_eq!([1, 2, 3].map(|funct3| multiply_or_divide(funct3, 1, minus_one)), [minus_one, 0, 0]);
    assert_eq!([1, 2, 3].map(|funct3| multiply_or_divide(funct3, minus_one, 1)), [minus_one, minus_one, 0]);
}

#[test]
fn steps_say_what_happened() {
    // lui ra,0x10; sb ra,1(ra); lbu a0,1(ra); csrr a1,cycle
    let mut iss = machine(&[0x0001_00b7, 0x0010_80a3, 0x0010_c503, 0xc000_25f3]);
    iss.hart_mut(0).set_register(1, 0);
    assert_eq!(iss.step(0).unwrap().rd, Some((1, 0x10000)));
    let store = iss.step(0).unwrap();
    assert_eq!((store.pc, store.rd), (4, None));
    let access = store.access.unwrap();
    let (address, place) = (0x10001, Place::Main(0x10001));
    assert_eq!(access, Access { operation: Operation::Store, address, place, bytes: 1, value: 0 });
    let load = iss.step(0).unwrap();
    assert_eq!(load.rd, Some((10, 0)));
    assert_eq!(load.access.unwrap().operation, Operation::Load);
    let counter = iss.step(0).unwrap();
    assert!(counter.counter);
    assert_eq!(counter.rd, Some((11, 3)));
}

#[test]
fn launches_report_exit_codes_and_endless_loops() {
    // csrr a0,mhartid; li a7,93; ecall
    let words = [0xf140_2573, 0x05d0_0893, 0x0000_0073];
    let program = Program::parse(VECADD).unwrap();
    let mut iss = Iss::new(&program, &Shape::new(2, 2)).unwrap();
    put(&mut iss, &words);
    assert_eq!(iss.run(), Err(LaunchError::Exit { thread: ThreadId { block: 0, thread: 1 }, code: 1 }));
    assert_eq!(iss.hart(3).exit(), Some(3));

    let mut iss = machine(&[0x0000_006f]);
    iss.set_limit(100);
    let error = iss.run().unwrap_err().to_string();
    assert_eq!(error, "still running after 100 instructions: thread 0 of block 0 running at 0x00000000 (_start)");
}

#[test]
fn atomics_return_the_old_value_and_leave_the_result() {
    let least = i32::MIN as u32;
    let base = 0x2_0000;
    for (funct5, old, operand, new) in [
        (0b00000, u32::MAX, 2, 1),
        (0b00001, 1, 2, 2),
        (0b00100, 0b1100, 0b1010, 0b0110),
        (0b01000, 0b1100, 0b1010, 0b1110),
        (0b01100, 0b1100, 0b1010, 0b1000),
        (0b10000, least, 1, least),
        (0b10000, 1, u32::MAX, u32::MAX),
        (0b10100, least, 1, 1),
        (0b10100, 1, u32::MAX, 1),
        (0b11000, least, 1, 1),
        (0b11000, 1, u32::MAX, 1),
        (0b11100, least, 1, least),
        (0b11100, 1, u32::MAX, u32::MAX),
    ] {
        for order in 0..4 {
            // The register of the address, of the operand, another, and none.
            for rd in [1, 2, 3, 0] {
                let mut iss = machine(&[asm::amo(funct5, rd, 2, 1) | order << 25]);
                iss.write(base, &old.to_le_bytes()).unwrap();
                iss.hart_mut(0).set_register(1, base);
                iss.hart_mut(0).set_register(2, operand);
                let step = iss.step(0).unwrap();
                assert_eq!(step.rd, (rd != 0).then_some((rd as u8, old)));
                let operation = Operation::Atomic { funct5, old };
                let access = Access { operation, address: base, place: Place::Main(base), bytes: 4, value: operand };
                assert_eq!(step.access, Some(access));
                assert_eq!(iss.read(base, 4).unwrap(), new.to_le_bytes(), "{funct5:05b} of {old:#x} and {operand:#x}");
            }
        }
    }
}

#[test]
fn atomics_fault_as_stores_and_only_the_known_ones_exist() {
    let add = asm::amo(0, 3, 2, 1);
    for offset in 1..4 {
        assert_eq!(cause(add, 0x2_0000 + offset), Some(Cause::MisalignedStore(0x2_0000 + offset)));
    }
    assert_eq!(cause(add, 0), Some(Cause::StoreToProgram(0)));
    assert_eq!(cause(add, 0xc000_0000), Some(Cause::StoreOutside(0xc000_0000)));
    let known = [0, 1, 4, 8, 12, 16, 20, 24, 28];
    for funct5 in 0..32 {
        let word = asm::amo(funct5, 3, 2, 1);
        assert_eq!(cause(word, 0x2_0000).is_none(), known.contains(&funct5), "{funct5:05b}");
        let other = word ^ 1 << 12;
        assert_eq!(cause(other, 0x2_0000), Some(Cause::Illegal(other)));
    }
    let without = Shape { atomics: false, ..with_all(1, 1) };
    let mut iss = Iss::new(&Program::assembled(&[add], []), &without).unwrap();
    assert_eq!(iss.step(0).unwrap_err().cause, Cause::Illegal(add));
}

#[test]
fn barrier_is_one_word() {
    assert_eq!(cause(asm::BARRIER, 0), None);
    // Bits 14..12 make it an instruction of convergence barriers.
    for bit in (7..12).chain(15..32) {
        assert_eq!(cause(asm::BARRIER | 1 << bit, 0), Some(Cause::Illegal(asm::BARRIER | 1 << bit)));
    }
    let mut iss = Iss::new(&Program::assembled(&[asm::BARRIER], []), &Shape::small(1, 1)).unwrap();
    assert_eq!(iss.step(0).unwrap_err().cause, Cause::Illegal(asm::BARRIER));
}

#[test]
fn convergence_barriers_have_no_effect_and_count_nobody() {
    let mut iss = machine(&[asm::join(1), asm::wait(1, 64), asm::count(3, 1), asm::copy(15, 0), asm::move_(0, 15)]);
    iss.harts[0].registers[1..].fill(7);
    let before = iss.hart(0).registers;
    for n in 0..5 {
        let step = iss.step(0).unwrap();
        assert_eq!((step.rd, step.counter), ((n == 2).then_some((3, 0)), n == 2));
        assert!(!step.barrier);
    }
    assert_eq!(iss.hart(0).registers, std::array::from_fn(|n| if n == 3 { 0 } else { before[n] }));
    // Barrier 16, a register that nothing is written to, a threshold of 65, a barrier where none is named, funct3 7.
    for word in [0x0008_100b, 0x0000_108b, 0x0410_200b, 0x0010_300b, 0x0010_400b, 0x0100_500b, 0x8000_600b, 0x0000_700b]
    {
        assert_eq!(cause(word, 0), Some(Cause::Illegal(word)), "{word:#010x}");
    }
}

/// Threads that access one stack address access words side by side; no two threads reconverge.
#[test]
fn stacks_are_interleaved_by_lane() {
    let shape = Shape { stack: 64, ..with_all(4, 2) };
    let mut iss = Iss::new(&Program::assembled(&[asm::store(0, 2, 1, 0); 16], []), &shape).unwrap();
    let stacks = shape.memory - 64 * 8;
    let mut seen = std::collections::BTreeSet::new();
    for hart in 0..8 {
        for (address, line) in [(0, 0), (1, 0), (4, 1), (63, 15)] {
            iss.hart_mut(hart).set_register(1, 0x8000_0000 + address);
            let access = iss.step(hart).unwrap().access.unwrap();
            let place = stacks + ((hart / 4 * 16 + line) * 4 + hart % 4) * 4 + address % 4;
            assert_eq!((access.address, access.place), (0x8000_0000 + address, Place::Main(place)));
            seen.insert(place);
        }
        for outside in [0x7fff_ffff, 0x8000_0040] {
            iss.hart_mut(hart).set_register(1, outside);
            assert_eq!(iss.step(hart).unwrap_err().cause, Cause::StoreOutside(outside));
        }
    }
    assert_eq!((seen.len(), seen.first(), seen.last()), (32, Some(&stacks), Some(&(shape.memory - 1))));
}
