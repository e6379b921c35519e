//! What gcc makes of C11's atomics, on the core: compare-and-swap of words by `lr.w` and `sc.w`, and bytes and half
//! words by `programs/atomics.S`.

use crate::compiled::compiled;
use heddle_check::checked;
use heddle_simt::{Backing, Divergence, Shape, Timing};
use heddle_testbench::kernels::Device;
use heddle_testbench::machine::{Machine, MachineOptions};

fn words(machine: &mut Machine, name: &str, count: usize) -> Vec<u32> {
    let address = machine.program().symbol(name).unwrap_or_else(|| panic!("the program has {name}")).address;
    let bytes = machine.read(address, 4 * count).unwrap();
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn lists_and_counters_of_all_threads() {
    let Some(program) = compiled("compare_and_swap", &["atomics.S"]) else { return };
    let late = Backing::Model(Timing { latency: 30, jitter: 15, interval: 1, seed: 5 });
    let core = |lanes, warps| Shape { reservations: true, ..Shape::new(lanes, warps) };
    let units = Divergence::ALL.iter().map(|&unit| core(8, 4).with_divergence(unit));
    let others = [core(1, 1), core(1, 8), core(32, 2), Shape { backing: late, ..core(4, 4) }];
    for shape in units.chain(others) {
        let options = MachineOptions { max_cycles: 4_000_000, ..checked() };
        let mut machine = Machine::new(&shape, program.clone(), &options).unwrap();
        machine.run().unwrap_or_else(|error| panic!("{}: {error}", shape.options()));
        let threads = shape.threads();
        let (next, number) =
            (words(&mut machine, "next", threads as usize), words(&mut machine, "number", threads as usize));
        let head = words(&mut machine, "head", 1)[0];
        let node = |node: u32| Some(node).filter(|&node| node != 0);
        let list = std::iter::successors(node(head), |&at| node(next[at as usize - 1]));
        let mut seen: Vec<u32> = list.take(threads as usize + 1).map(|node| number[node as usize - 1]).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..threads).map(|k| 3 * k + 1).collect::<Vec<_>>(), "{}", shape.options());

        let of = |rest: u32, modulus: u32| (0..threads).filter(|k| k % modulus == rest).count() as u32;
        let bytes = words(&mut machine, "bytes", 1)[0];
        let want = [of(0, 3), of(1, 3), of(2, 3), of(1, 2) & 1].map(|byte| byte as u8);
        assert_eq!(bytes.to_le_bytes(), want, "{}", shape.options());
        let halves = words(&mut machine, "halves", 1)[0];
        let want = [of(0, 2), of(1, 2)].map(|count| (0u16).wrapping_sub(2 * count as u16));
        assert_eq!([halves as u16, (halves >> 16) as u16], want, "{}", shape.options());
        let address = machine.program().symbol("greatest").unwrap().address;
        let greatest = machine.read(address, 1).unwrap()[0];
        assert_eq!(u32::from(greatest), (threads - 1).min(0x7f), "{}", shape.options());
    }
}
