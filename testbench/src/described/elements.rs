//! Buffers as numbers: types of elements, fills, files of numbers.

use std::fs;
use std::path::Path;

use fastrand::Rng;
use serde::Deserialize;

/// What a buffer has elements of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    U8,
    I8,
    U16,
    I16,
    #[default]
    U32,
    I32,
    U64,
    I64,
}

impl Type {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Type::U8 | Type::I8 => 1,
            Type::U16 | Type::I16 => 2,
            Type::U32 | Type::I32 => 4,
            Type::U64 | Type::I64 => 8,
        }
    }

    fn is_signed(self) -> bool {
        matches!(self, Type::I8 | Type::I16 | Type::I32 | Type::I64)
    }

    /// The least and the greatest number.
    pub fn range(self) -> (i128, i128) {
        let numbers = 1i128 << (8 * self.bytes());
        if self.is_signed() { (-numbers / 2, numbers / 2 - 1) } else { (0, numbers - 1) }
    }

    /// Its bits.
    pub fn mask(self) -> i128 {
        (1 << (8 * self.bytes())) - 1
    }

    /// A number's low bytes, little-endian.
    pub fn encode(self, number: i128) -> Vec<u8> {
        number.to_le_bytes()[..self.bytes()].to_vec()
    }

    /// The numbers that bytes are.
    pub fn decode(self, bytes: &[u8]) -> Vec<i128> {
        let number = |element: &[u8]| {
            let negative = self.is_signed() && element.last().is_some_and(|last| last >> 7 == 1);
            let mut whole = [if negative { 0xff } else { 0 }; 16];
            whole[..element.len()].copy_from_slice(element);
            i128::from_le_bytes(whole)
        };
        bytes.chunks_exact(self.bytes()).map(number).collect()
    }

    /// Refuses numbers that it does not have.
    pub fn check(self, numbers: &[i128]) -> Result<(), String> {
        let (least, most) = self.range();
        match numbers.iter().find(|number| !(least..=most).contains(number)) {
            Some(number) => Err(format!("{number} is not from {least} to {most}, as the type has them")),
            None => Ok(()),
        }
    }
}

/// Where a buffer's first contents come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Contents {
    Fixed(Vec<u8>),
    Random { element: Type, length: usize, seed: u64, from: i128, to: i128 },
}

impl Contents {
    /// The bytes, of a buffer of this name in a run with this seed.
    pub fn bytes(&self, name: &str, run: u64) -> Vec<u8> {
        match self {
            Contents::Fixed(bytes) => bytes.clone(),
            &Contents::Random { element, length, seed, from, to } => {
                // Buffers differ, and runs with other seeds.
                let digest = md5::compute(format!("{run} {seed} {name}"));
                let seed = u64::from_le_bytes(std::array::from_fn(|at| digest[at]));
                let mut rng = Rng::with_seed(seed);
                (0..length).flat_map(|_| element.encode(rng.i128(from..=to))).collect()
            }
        }
    }
}

/// The bytes of so many elements that a file has: little-endian in `.bin`, numbers in `.txt` and `.csv`.
pub fn read(path: &Path, element: Type, length: usize) -> Result<Vec<u8>, String> {
    let name = path.display();
    let cannot = |why: std::io::Error| format!("cannot read {name}: {why}");
    let (bytes, has) = match path.extension().and_then(|extension| extension.to_str()) {
        Some("bin") => {
            let bytes = fs::read(path).map_err(cannot)?;
            if bytes.len() % element.bytes() != 0 {
                return Err(format!("{name} has {} bytes, elements have {}", bytes.len(), element.bytes()));
            }
            let has = bytes.len() / element.bytes();
            (bytes, has)
        }
        Some("txt" | "csv") => {
            let numbers = numbers(&fs::read_to_string(path).map_err(cannot)?).map_err(|why| format!("{name}:{why}"))?;
            element.check(&numbers).map_err(|why| format!("{name}: {why}"))?;
            (numbers.iter().flat_map(|number| element.encode(*number)).collect(), numbers.len())
        }
        _ => return Err(format!("{name}: wanted is a file .bin, of little-endian numbers, or .txt or .csv, of text")),
    };
    if has == length {
        return Ok(bytes);
    }
    let too = if has < length { "short" } else { "long" };
    Err(format!("{name} is too {too}: it has {has} elements, the buffer {length}; `length` says that it has fewer"))
}

/// Numbers as text, decimal or 0x; what is behind a `#` is for people.
fn numbers(text: &str) -> Result<Vec<i128>, String> {
    let mut numbers = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("");
        for word in line.split([' ', '\t', ',', ';']).filter(|word| !word.is_empty()) {
            let digits = word.strip_prefix('-').unwrap_or(word);
            let (digits, radix) = digits.strip_prefix("0x").map_or((digits, 10), |digits| (digits, 16));
            let number = i128::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with(['-', '+']));
            let number = number.ok_or_else(|| format!("{}: `{word}` is no whole number", at + 1))?;
            numbers.push(if word.starts_with('-') { -number } else { number });
        }
    }
    Ok(numbers)
}

/// What [`read`] reads: little-endian, or a number a line.
pub fn written(path: &Path, element: Type, bytes: &[u8]) -> Result<Vec<u8>, String> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("bin") => Ok(bytes.to_vec()),
        Some("txt" | "csv") => {
            Ok(element.decode(bytes).iter().map(|number| format!("{number}\n")).collect::<String>().into_bytes())
        }
        _ => Err(format!(
            "{}: wanted is a file .bin, of little-endian numbers, or .txt or .csv, of text",
            path.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_their_bytes_in_each_type() {
        for (element, least, most) in [
            (Type::U8, 0, 255),
            (Type::I16, -32768, 32767),
            (Type::U32, 0, 0xffff_ffff),
            (Type::I64, i64::MIN.into(), i64::MAX.into()),
        ] {
            assert_eq!(element.range(), (least, most));
            let bytes: Vec<u8> = [least, 1, most].iter().flat_map(|number| element.encode(*number)).collect();
            assert_eq!(bytes.len(), 3 * element.bytes());
            assert_eq!(element.decode(&bytes), [least, 1, most]);
            assert!(element.check(&[least, most]).is_ok() && element.check(&[most + 1]).is_err());
        }
        assert_eq!(Type::I8.check(&[1, -129]).unwrap_err(), "-129 is not from -128 to 127, as the type has them");
    }

    #[test]
    fn random_numbers_are_those_of_seed_and_name_and_fill_their_range() {
        let random = |seed, name: &str, run| {
            let contents = Contents::Random { element: Type::I8, length: 1000, seed, from: -2, to: 2 };
            Type::I8.decode(&contents.bytes(name, run))
        };
        let first = random(1, "a", 1);
        assert_eq!(first, random(1, "a", 1));
        assert!([random(2, "a", 1), random(1, "b", 1), random(1, "a", 2)].iter().all(|other| *other != first));
        let mut seen = first;
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [-2, -1, 0, 1, 2]);
    }

    #[test]
    fn text_has_numbers_and_says_where_it_has_none() {
        assert_eq!(numbers("1, 0x10;-3 # of apples\n\n\t4\n").unwrap(), [1, 16, -3, 4]);
        assert_eq!(numbers("1\n2 two\n").unwrap_err(), "2: `two` is no whole number");
        for wrong in ["--1", "+1", "0x-1", "1.5", "-"] {
            assert!(numbers(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_that_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = [-1, 2, 300].iter().flat_map(|number| Type::I16.encode(*number)).collect();
        for name in ["a.bin", "a.txt", "a.csv"] {
            let path = folder.path().join(name);
            fs::write(&path, written(&path, Type::I16, &bytes).unwrap()).unwrap();
            assert_eq!(read(&path, Type::I16, 3).unwrap(), bytes);
            assert!(read(&path, Type::I16, 4).unwrap_err().contains("is too short: it has 3 elements, the buffer 4"));
            assert!(read(&path, Type::I16, 2).unwrap_err().contains("is too long"));
        }
        assert!(
            read(&folder.path().join("a.bin"), Type::U32, 1).unwrap_err().ends_with("has 6 bytes, elements have 4")
        );
        assert!(read(&folder.path().join("a.txt"), Type::U16, 3).unwrap_err().contains("-1 is not from 0 to 65535"));
        assert!(written(Path::new("a.dat"), Type::U8, &[]).unwrap_err().starts_with("a.dat: wanted is a file .bin"));
    }
}
