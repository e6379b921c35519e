//! The records that the directives of `heddle.h` make.
//!
//! A record is the address of the place in the code, its kind and threshold, three words, and a name that ends with a
//! 0, filled up to a word.

use super::PredictError;
use super::linked::Linked;
use super::write::RECORDS;
use heddle_simt::isa::convergence::MOST_THRESHOLD;
use object::build::elf::SectionData;

/// What a directive says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A region begins.
    Predict,
    /// The threads of the region wait here for each other.
    Reconverge,
    /// A region begins, whose threads wait for each other where a function begins.
    PredictFunction,
}

/// A directive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Directive {
    pub kind: Kind,
    pub name: String,
    /// Instruction before which it stands.
    pub pc: u32,
    /// 0 is none.
    pub threshold: u32,
}

impl Directive {
    /// As the source has it.
    pub fn text(&self) -> String {
        let macros = match self.kind {
            Kind::Predict => "HEDDLE_PREDICT",
            Kind::Reconverge => "HEDDLE_RECONVERGE",
            Kind::PredictFunction => "HEDDLE_PREDICT_FUNCTION",
        };
        format!("{macros}({})", self.name)
    }
}

/// The directives of a program, in order of kind, name and place.
pub fn read(linked: &Linked) -> Result<Vec<Directive>, PredictError> {
    let section = linked.builder.sections.iter().find(|section| section.name.as_slice() == RECORDS);
    let Some(SectionData::Data(data)) = section.map(|section| &section.data) else { return Ok(vec![]) };
    let mut rest = data.as_slice();
    let mut directives = Vec::new();
    while !rest.is_empty() {
        let damaged = || PredictError::File { what: "a record of a directive is damaged".into() };
        let word = |n: usize| -> Result<u32, PredictError> {
            let bytes = rest.get(4 * n..4 * n + 4).ok_or_else(damaged)?;
            Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
        };
        let (pc, kind, threshold) = (word(0)?, word(1)?, word(2)?);
        let kind = match kind {
            0 => Kind::Predict,
            1 => Kind::Reconverge,
            2 => Kind::PredictFunction,
            _ => return Err(damaged()),
        };
        let name = rest[12..].split(|&byte| byte == 0).next().unwrap_or_default();
        let after = 12 + name.len() + 1;
        let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty() && !name.contains(char::is_control));
        let name = name.ok_or_else(damaged)?.to_string();
        let next = after.next_multiple_of(4).min(rest.len());
        if after > rest.len() || !pc.is_multiple_of(4) || linked.program.word(pc).is_none() {
            return Err(damaged());
        }
        let directive = Directive { kind, name, pc, threshold };
        if threshold > MOST_THRESHOLD {
            let (text, place) = (directive.text(), linked.place(pc));
            return Err(PredictError::Threshold { text, place, threshold });
        }
        directives.push(directive);
        rest = &rest[next..];
    }
    directives.sort();
    directives.dedup();
    Ok(directives)
}
