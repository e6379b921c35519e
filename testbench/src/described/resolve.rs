//! A description against a program: what it names is there, and what it reads is read.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;

use super::DescriptionError;
use super::driver::{Driver, View};
use super::elements::{Contents, Type, read, written};
use super::file::{Buffer, Check, Description, Fill, Picture};
use super::picture::Drawing;
use crate::grid::Grid;
use crate::kernels::Device;
use crate::nearest::{nearest, suggestion};
use crate::program::{Program, Symbol};

/// Threads that a block has where there is one for each item, if the core has as many.
const OF_ITEMS: u32 = 256;

/// The grid of a launch, on any core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GridSpec {
    /// Blocks.
    pub blocks: Option<u32>,
    /// Threads of a block.
    pub block_threads: Option<u32>,
    /// Or as many blocks as have a thread for each of so many items.
    pub items: Option<u32>,
}

impl GridSpec {
    /// It on a device: unless said, one block, of all threads of the core.
    pub fn of(&self, device: &dyn Device) -> Grid {
        self.on(device.threads(), |wanted| device.block_threads(wanted))
    }

    /// It on a core of so many threads, of which a block has by itself what `usual` makes of a wish.
    pub fn on(&self, all: u32, usual: impl Fn(u32) -> u32) -> Grid {
        let threads = self.block_threads.unwrap_or_else(|| if self.items.is_some() { usual(OF_ITEMS) } else { all });
        let of_items = self.items.map(|items| items.div_ceil(threads.max(1)).max(1));
        Grid { blocks: self.blocks.or(of_items).unwrap_or(1), threads }
    }
}

type Checked<T> = Result<T, DescriptionError>;

impl Description {
    /// The driver that it is for a program.
    pub fn driver(&self, program: &Program) -> Checked<Driver> {
        let of = Of { description: self, program };
        let tables = &self.tables;
        let grid = GridSpec {
            blocks: tables.grid.blocks.map(NonZeroU32::get),
            block_threads: tables.grid.block_threads.map(NonZeroU32::get),
            items: tables.grid.items.as_ref().map(|items| *items.get_ref()),
        };
        if let (Some(items), Some(_)) = (&tables.grid.items, grid.blocks) {
            return Err(self.wrong(items.span().start, "grid: `items` is in place of `blocks`: leave one of them away"));
        }
        let mut fingerprint = md5::Context::new();
        fingerprint.consume(self.text());

        let arguments =
            tables.arguments.iter().map(|(name, value)| Ok((name.get_ref().clone(), of.argument(name, *value)?)));
        let arguments = arguments.collect::<Checked<_>>()?;
        let mut fills = Vec::new();
        for (name, buffer) in &tables.buffers {
            if let Some(contents) = of.contents(name, buffer)? {
                if let Contents::Fixed(bytes) = &contents {
                    fingerprint.consume(bytes);
                }
                fills.push((name.get_ref().clone(), contents));
            }
        }

        let none = Check::default();
        let check = match &tables.check {
            Some(check) if check.get_ref().is_empty() => {
                let why = "check: there is nothing in it: wanted are `reference` and `buffers`, or `files`";
                return Err(self.wrong(check.span().start, why));
            }
            Some(check) => check.get_ref(),
            None => &none,
        };
        match (&check.reference, check.buffers.first()) {
            (Some(function), None) => {
                return Err(self
                    .wrong(function.span().start, "check: `buffers` is missing: which to compare with the reference"));
            }
            (None, Some(buffer)) => {
                return Err(self.wrong(
                    buffer.span().start,
                    "check: `reference` is missing: the function that computes `buffers`",
                ));
            }
            (Some(function), Some(_)) => of.function(function)?,
            (None, None) => {}
        }
        let computed = check.buffers.iter().map(|name| of.some(name)).collect::<Checked<_>>()?;
        let mut known = Vec::new();
        for (name, file) in &check.files {
            let view = of.some(name)?;
            let bytes = of.file(file, view.element, view.length)?;
            fingerprint.consume(&bytes);
            known.push((view, bytes));
        }
        let prints = tables.results.print.iter().map(|asked| Ok((asked.get_ref().clone(), of.part(asked)?)));
        let prints = prints.collect::<Checked<_>>()?;
        let saves = tables.results.save.iter().map(|(name, path)| of.saved(name, path)).collect::<Checked<_>>()?;
        let mut pictures: Vec<(&Spanned<String>, &Picture)> = tables.pictures.iter().collect();
        pictures.sort_by_key(|(name, _)| name.span().start);
        let pictures = pictures.into_iter().map(|(name, picture)| of.picture(name, picture)).collect::<Checked<_>>()?;
        of.no_file_twice()?;

        Ok(Driver {
            name: self.name().into(),
            grid,
            arguments,
            fills,
            reference: check.reference.as_ref().map(|function| function.get_ref().clone()),
            computed,
            known,
            prints,
            saves,
            pictures,
            fingerprint: format!("{:x}", fingerprint.finalize()),
            interrupted: Arc::default(),
        })
    }
}

/// One path for all that lead to a file, which need not be there.
fn place(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (path.canonicalize(), folder.canonicalize(), path.file_name()) {
        (Ok(path), ..) => path,
        (_, Ok(folder), Some(name)) => folder.join(name),
        _ => path.components().collect(),
    }
}

/// A description beside a program.
struct Of<'a> {
    description: &'a Description,
    program: &'a Program,
}

impl Of<'_> {
    fn wrong<T>(&self, at: &Spanned<T>, what: String) -> DescriptionError {
        self.description.wrong(at.span().start, what)
    }

    /// The symbol of a name that stands there.
    fn symbol(&self, name: &str, at: &Spanned<String>, is_wanted: fn(&Symbol) -> bool, what: &str) -> Checked<&Symbol> {
        if let Some(symbol) = self.program.symbol(name).filter(|symbol| is_wanted(symbol)) {
            return Ok(symbol);
        }
        if self.program.symbol(name).is_some_and(|symbol| symbol.size == 0) {
            return Err(
                self.wrong(at, format!("`{name}` has no size: in assembly, `.size {name}, BYTES` gives it one"))
            );
        }
        let others = self.program.symbols().iter().filter(|symbol| symbol.global && is_wanted(symbol));
        let meant = suggestion(nearest(name, others.map(|symbol| symbol.name.as_str())));
        let hint = if meant.is_empty() { " (if it is `static`, the compiler may drop it)" } else { "" };
        Err(self.wrong(at, format!("the program has no {what} `{name}`{meant}{hint}")))
    }

    fn function(&self, name: &Spanned<String>) -> Checked<()> {
        self.symbol(name.get_ref(), name, |symbol| symbol.function, "function")?;
        // Start-up code goes to it in place of `main`.
        self.symbol("main", name, |symbol| symbol.function, "function").map(drop)
    }

    fn variable(&self, name: &str, at: &Spanned<String>) -> Checked<&Symbol> {
        self.symbol(name, at, |symbol| !symbol.function && symbol.size > 0, "variable")
    }

    fn argument(&self, name: &Spanned<String>, value: i128) -> Checked<Vec<u8>> {
        let bytes = self.variable(name.get_ref(), name)?.size;
        let (unsigned, signed) = match bytes {
            1 => (Type::U8, Type::I8),
            2 => (Type::U16, Type::I16),
            4 => (Type::U32, Type::I32),
            8 => (Type::U64, Type::I64),
            _ => {
                let why = format!("`{}` has {bytes} bytes, which is no number: it is for `buffers`", name.get_ref());
                return Err(self.wrong(name, why));
            }
        };
        let bits = 8 * bytes;
        if unsigned.check(&[value]).is_err() && signed.check(&[value]).is_err() {
            return Err(self.wrong(name, format!("{} = {value}: it has {bits} bits", name.get_ref())));
        }
        Ok(unsigned.encode(value))
    }

    /// All elements of a buffer: those that the description speaks of, or all that there are.
    fn whole(&self, name: &Spanned<String>) -> Checked<View> {
        self.named(name.get_ref(), name)
    }

    /// All elements of a buffer that is compared: one at least.
    fn some(&self, name: &Spanned<String>) -> Checked<View> {
        let view = self.whole(name)?;
        if view.length == 0 {
            let why = format!("check: `{}` has `length` 0: there is nothing to compare", view.name);
            return Err(self.wrong(name, why));
        }
        Ok(view)
    }

    fn named(&self, name: &str, at: &Spanned<String>) -> Checked<View> {
        let symbol = self.variable(name, at)?;
        let described = self.description.tables.buffers.iter().find(|(other, _)| other.get_ref() == name);
        let element = described.map_or(Type::default(), |(_, buffer)| buffer.element);
        let room = symbol.size as usize / element.bytes();
        let length = match described.and_then(|(_, buffer)| buffer.length.as_ref()) {
            Some(length) if *length.get_ref() > room => {
                let why = format!(
                    "`{name}` has room for {room} elements of {} bytes, not {}",
                    element.bytes(),
                    length.get_ref()
                );
                return Err(self.wrong(length, why));
            }
            Some(length) => *length.get_ref(),
            None => room,
        };
        Ok(View { name: name.into(), element, address: symbol.address, first: 0, length })
    }

    /// `name`, `name[3]`, `name[..16]`.
    fn part(&self, asked: &Spanned<String>) -> Checked<View> {
        let text = asked.get_ref().as_str();
        let Some((name, range)) = text.split_once('[') else { return self.whole(asked) };
        let view = self.named(name, asked)?;
        let wanted = || {
            let example = format!("{name}[3], {name}[..16] or {name}[8..16]");
            self.wrong(
                asked,
                format!("`{text}`: wanted is `{name}`, or a part of its {} elements, such as {example}", view.length),
            )
        };
        let range = range.strip_suffix(']').ok_or_else(wanted)?;
        let number = |text: &str, otherwise: usize| match text {
            "" => Some(otherwise),
            digits => digits.parse().ok(),
        };
        let (first, end) = match range.split_once("..") {
            Some((first, end)) => (number(first, 0), number(end, view.length)),
            None => (range.parse().ok(), range.parse().ok().and_then(|at: usize| at.checked_add(1))),
        };
        match (first, end) {
            (Some(first), Some(end)) if first < end && end <= view.length => {
                Ok(View { first, length: end - first, ..view })
            }
            _ => Err(wanted()),
        }
    }

    /// What a buffer is filled with, unless it stays as the program has it.
    fn contents(&self, name: &Spanned<String>, buffer: &Buffer) -> Checked<Option<Contents>> {
        let view = self.whole(name)?;
        let (element, length) = (view.element, view.length);
        let range = |numbers: &[i128], at: &Spanned<i128>| element.check(numbers).map_err(|why| self.wrong(at, why));
        let fill = buffer.fill.as_ref().map(|fill| *fill.get_ref());
        let allowed: [(bool, &Option<Spanned<i128>>, &str); 3] = [
            (
                matches!(fill, Some(Fill::Random | Fill::Counting)),
                &buffer.from,
                "`from` is for fill = \"counting\" and \"random\"",
            ),
            (fill == Some(Fill::Random), &buffer.to, "`to` is for fill = \"random\""),
            (fill == Some(Fill::Counting), &buffer.step, "`step` is for fill = \"counting\""),
        ];
        for (is_allowed, field, why) in allowed {
            match field {
                Some(field) if !is_allowed => return Err(self.wrong(field, why.into())),
                _ => {}
            }
        }
        if let Some(seed) = buffer.seed.as_ref().filter(|_| fill != Some(Fill::Random)) {
            return Err(self.wrong(seed, "`seed` is for fill = \"random\"".into()));
        }
        let ways = [fill.is_some(), buffer.values.is_some(), buffer.file.is_some()];
        if ways.iter().filter(|way| **way).count() > 1 {
            let why = format!("`{}` has several of `fill`, `values` and `file`: wanted is one", name.get_ref());
            return Err(self.wrong(name, why));
        }
        let encoded =
            |numbers: &[i128]| Contents::Fixed(numbers.iter().flat_map(|number| element.encode(*number)).collect());

        if let Some(file) = &buffer.file {
            return Ok(Some(Contents::Fixed(self.file(file, element, length)?)));
        }
        if let Some(values) = &buffer.values {
            let numbers = values.get_ref();
            if numbers.len() > length {
                let why = format!("`{}` has room for {length} elements, not {}", name.get_ref(), numbers.len());
                return Err(self.wrong(values, why));
            }
            element.check(numbers).map_err(|why| self.wrong(values, why))?;
            return Ok(Some(encoded(numbers)));
        }
        let given = |field: &Option<Spanned<i128>>| field.as_ref().map(|field| *field.get_ref());
        Ok(match fill {
            None => None,
            Some(Fill::Zeros) => Some(encoded(&vec![0; length])),
            Some(Fill::Counting) => {
                let (from, step) = (given(&buffer.from).unwrap_or(0), given(&buffer.step).unwrap_or(1));
                let numbers: Vec<i128> =
                    (0..length as i128).map(|at| from.saturating_add(at.saturating_mul(step))).collect();
                let place = buffer.fill.as_ref().map(|fill| fill.span().start).unwrap_or_default();
                element.check(&numbers).map_err(|why| self.description.wrong(place, why))?;
                Some(encoded(&numbers))
            }
            Some(Fill::Random) => {
                let (least, most) = element.range();
                for end in [&buffer.from, &buffer.to].into_iter().flatten() {
                    range(&[*end.get_ref()], end)?;
                }
                let (from, to) = (given(&buffer.from).unwrap_or(least), given(&buffer.to).unwrap_or(most));
                if from > to {
                    let why = format!("`{}` has random numbers from {from} to {to}: there are none", name.get_ref());
                    return Err(self.wrong(name, why));
                }
                let seed = buffer.seed.as_ref().map_or(0, |seed| *seed.get_ref());
                Some(Contents::Random { element, length, seed, from, to })
            }
        })
    }

    /// The bytes of a file of numbers.
    fn file(&self, file: &Spanned<String>, element: Type, length: usize) -> Checked<Vec<u8>> {
        read(&self.description.path(file.get_ref()), element, length).map_err(|why| self.wrong(file, why))
    }

    fn saved(&self, name: &Spanned<String>, path: &Spanned<String>) -> Checked<(PathBuf, View)> {
        let (view, to) = (self.whole(name)?, self.description.path(path.get_ref()));
        written(&to, view.element, &[]).map_err(|why| self.wrong(path, why))?;
        Ok((to, view))
    }

    /// What is written is nothing that is read, and goes to files of its own.
    fn no_file_twice(&self) -> Checked<()> {
        let (description, tables) = (self.description, &self.description.tables);
        let contents = tables.buffers.values().filter_map(|buffer| buffer.file.as_ref());
        let numbers = contents
            .chain(tables.check.iter().flat_map(|check| check.get_ref().files.values()))
            .map(|file| description.path(file.get_ref()));
        let sources = description.sources().into_iter().chain([description.name().into()]);
        let read: Vec<PathBuf> = numbers.chain(sources).map(|path| place(&path)).collect();
        let pictures = tables.pictures.values().filter_map(|picture| picture.file.as_ref());
        let mut writes: Vec<&Spanned<String>> = tables.results.save.values().chain(pictures).collect();
        writes.sort_by_key(|file| file.span().start);
        let mut written = Vec::new();
        for file in writes {
            let place = place(&description.path(file.get_ref()));
            let name = file.get_ref();
            if read.contains(&place) {
                return Err(self.wrong(file, format!("{name} is read, too: results need a file of their own")));
            }
            if written.contains(&place) {
                return Err(self.wrong(file, format!("{name} is written twice: each result needs a file of its own")));
            }
            written.push(place);
        }
        Ok(())
    }

    fn picture(&self, name: &Spanned<String>, picture: &Picture) -> Checked<(View, Drawing, Option<PathBuf>)> {
        let view = self.whole(name)?;
        let &Picture { colours, from, to, .. } = picture;
        let (width, height) = (*picture.width.get_ref(), *picture.height.get_ref());
        let drawing = Drawing { width, height, colours, from, to };
        if width == 0 || height == 0 || u64::from(width) * u64::from(height) > view.length as u64 {
            let why = format!(
                "a picture of {width} × {height} pixels of `{}`, which has {} elements",
                view.name, view.length
            );
            return Err(self.wrong(&picture.width, why));
        }
        let file = match &picture.file {
            Some(file) if !file.get_ref().ends_with(".png") => {
                return Err(self.wrong(file, format!("{}: wanted is a file .png", file.get_ref())));
            }
            Some(file) => Some(self.description.path(file.get_ref())),
            None => None,
        };
        Ok((view, drawing, file))
    }
}
