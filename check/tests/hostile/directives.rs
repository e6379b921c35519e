//! Programs whose records of directives are damaged: barriers are placed and results stay what they are, or the program
//! is refused in a line.

use crate::*;
use heddle_testbench::kernels::Kernel;
use heddle_testbench::predict::{Automatic, Deconflict, Soft};
use std::collections::BTreeMap;

const RECORDS: &[u8] = b".heddle.predict";
const RELOCATIONS: &[u8] = b".rela.heddle.predict";

/// The header of a section.
fn header(file: &[u8], name: &[u8]) -> Option<usize> {
    let headers: Vec<usize> = (0..half(file, 48)).map(|number| word(file, SHOFF) + 40 * number).collect();
    let names = word(file, headers[half(file, 50)] + 16);
    let is_named = |header: &usize| file[names + word(file, *header)..].split(|&byte| byte == 0).next() == Some(name);
    headers.into_iter().find(is_named)
}

/// Place, kind, threshold, and a name that may lack its end.
#[derive(Clone, Debug)]
struct Record {
    words: [u32; 3],
    name: Vec<u8>,
}

fn records(file: &[u8]) -> Vec<Record> {
    let header = header(file, RECORDS).expect("the kernel has directives");
    let mut rest = &file[word(file, header + 16)..][..word(file, header + 20)];
    let mut records = Vec::new();
    while !rest.is_empty() {
        let end = 12 + rest[12..].iter().position(|&byte| byte == 0).expect("a name ends") + 1;
        let name = rest[12..end].to_vec();
        records.push(Record { words: [0, 4, 8].map(|at| word(rest, at) as u32), name });
        rest = &rest[end.next_multiple_of(4).min(rest.len())..];
    }
    records
}

fn bytes(records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for Record { words, name } in records {
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend(name);
        bytes.resize(bytes.len().next_multiple_of(4), if name.ends_with(&[0]) { 0 } else { b'x' });
    }
    bytes
}

#[derive(Clone, Debug)]
enum Edit {
    Word(usize, u32),
    /// It stands at another instruction of the program.
    Place(Index),
    Name(Vec<u8>),
    NameOf(Index),
    NoEnd,
    Again,
    Gone,
}

#[derive(Clone, Debug)]
struct Damage {
    kernel: Index,
    edits: Vec<(Index, Edit)>,
    bytes: Vec<(Index, u8)>,
    cut: Option<Index>,
    /// Of the section's header.
    field: Option<(usize, u32)>,
    /// Without them, the section may have any size.
    relocations: bool,
    options: Options,
}

fn edit() -> impl Strategy<Value = Edit> {
    let kind = (0u32..4).prop_map(|kind| Edit::Word(1, kind));
    let threshold = (0u32..66).prop_map(|threshold| Edit::Word(2, threshold));
    let name = prop::collection::vec(any::<u8>(), 0..6).prop_map(|mut name| {
        name.push(0);
        Edit::Name(name)
    });
    prop_oneof![
        1 => (0..3usize, extremes()).prop_map(|(word, value)| Edit::Word(word, value)),
        3 => any::<Index>().prop_map(Edit::Place),
        2 => kind,
        2 => threshold,
        1 => name,
        2 => any::<Index>().prop_map(Edit::NameOf),
        1 => Just(Edit::NoEnd),
        2 => Just(Edit::Again),
        1 => Just(Edit::Gone),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let deconflict = prop::sample::select(vec![Deconflict::Static, Deconflict::Dynamic, Deconflict::Rejoin]);
    let soft = prop::sample::select(vec![Soft::Wait, Soft::Count]);
    let threshold = prop::option::weighted(0.2, 0u32..66);
    let barriers = prop_oneof![4 => Just(16), 1 => 0u32..18];
    (any::<[bool; 3]>(), deconflict, soft, threshold, barriers).prop_map(
        |([pdom, auto, ignore], deconflict, soft, threshold, barriers)| Options {
            barriers,
            directives: !(auto && ignore),
            automatic: auto.then(Automatic::default),
            pdom,
            deconflict,
            soft,
            threshold,
            choices: BTreeMap::new(),
        },
    )
}

fn damage() -> impl Strategy<Value = Damage> {
    let edits = prop::collection::vec((any::<Index>(), edit()), 0..4);
    let bytes = prop::collection::vec((any::<Index>(), any::<u8>()), 0..2);
    let cut = prop::option::weighted(0.1, any::<Index>());
    let field = prop::option::weighted(0.1, (0..10usize, extremes()));
    (any::<Index>(), edits, bytes, cut, field, any::<bool>(), options()).prop_map(
        |(kernel, edits, bytes, cut, field, relocations, options)| Damage {
            kernel,
            edits,
            bytes,
            cut,
            field,
            relocations,
            options,
        },
    )
}

impl Damage {
    fn kernel(&self) -> &'static Kernel {
        let with: Vec<&Kernel> = ALL.iter().filter(|kernel| header(kernel.elf, RECORDS).is_some()).collect();
        with[self.kernel.index(with.len())]
    }

    fn file(&self) -> Vec<u8> {
        let mut file = self.kernel().elf.to_vec();
        let code = Program::parse(&file).unwrap().program_end() as usize / 4;
        let mut records = records(&file);
        for (at, edit) in &self.edits {
            let names: Vec<Vec<u8>> = records.iter().map(|record| record.name.clone()).collect();
            let Some(count) = Some(records.len()).filter(|&count| count > 0) else { break };
            let at = at.index(count);
            let record = &mut records[at];
            match edit {
                Edit::Word(word, value) => record.words[*word] = *value,
                Edit::Place(place) => record.words[0] = 4 * place.index(code) as u32,
                Edit::Name(name) => record.name = name.clone(),
                Edit::NameOf(other) => record.name = names[other.index(count)].clone(),
                Edit::NoEnd => _ = record.name.pop(),
                Edit::Again => {
                    let again = record.clone();
                    records.push(again);
                }
                Edit::Gone => _ = records.remove(at),
            }
        }
        let mut contents = bytes(&records);
        for (at, value) in self.bytes.iter().filter(|_| !contents.is_empty()).collect::<Vec<_>>() {
            let at = at.index(contents.len());
            contents[at] = *value;
        }
        if let Some(cut) = self.cut.filter(|_| !contents.is_empty()) {
            contents.truncate(cut.index(contents.len()));
        }
        if !self.relocations {
            let header = header(&file, RELOCATIONS).expect("records have relocations");
            set(&mut file, (header + 20, 4), 0);
        }
        let header = header(&file, RECORDS).expect("the kernel has directives");
        let start = file.len() as u32;
        set(&mut file, (header + 16, 4), start);
        set(&mut file, (header + 20, 4), contents.len() as u32);
        if let Some((field, value)) = self.field {
            set(&mut file, (header + 4 * field, 4), value);
        }
        file.extend(contents);
        file
    }
}

/// What refusals say, so that damage comes to each check.
const REFUSALS: [&str; 8] = [
    "a record of a directive is damaged",
    "has a threshold of",
    "a threshold of",
    "barriers a warp: wanted",
    "leads to no HEDDLE_RECONVERGE",
    "is reached from no HEDDLE_PREDICT",
    "names no function of the program",
    "nothing to place",
];

#[test]
fn damaged_directives_are_refused_or_change_no_result() {
    limit_memory();
    let placed = Cell::new(0u32);
    let refused = RefCell::new(BTreeMap::new());
    let usual = if std::env::var_os("HEDDLE_LONG").is_some() { 800 } else { 300 };
    let result = TestRunner::new(cases(usual)).run(&damage(), |damage| {
        match place_barriers(&damage.file(), &damage.options)? {
            Ok(prediction) => {
                // Results of some, as runs take longer than all else.
                if placed.replace(placed.get() + 1).is_multiple_of(16) {
                    let program = Program::parse(&prediction.elf).unwrap();
                    let shape = Shape { program: 64 << 10, ..Shape::new(2, 1) };
                    let mut iss = Iss::new(&program, &shape).unwrap();
                    let run = (damage.kernel().drive)(&mut iss, 1);
                    prop_assert!(run.is_ok(), "{}: {:?}", damage.kernel().name, run);
                }
            }
            Err(error) => {
                let text = error.to_string();
                let known = REFUSALS.iter().find(|known| text.contains(**known)).copied();
                *refused.borrow_mut().entry(known).or_insert(0) += 1;
            }
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    let refused = refused.into_inner();
    eprintln!("{} placed, refused: {refused:?}", placed.get());
    assert!(placed.get() > usual * 3 / 8, "barriers were placed in {} programs only", placed.get());
    for text in REFUSALS {
        assert!(refused.contains_key(&Some(text)), "nothing was refused because it {text}");
    }
}
