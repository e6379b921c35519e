//! The file of a program that is laid out anew.
//!
//! It has no relocations, so it cannot be laid out once more.

use super::PredictError;
use super::layout::Layout;
use super::linked::{Linked, To, is_section, is_undefined};
use super::relocation::Field;
use crate::program::GRAIN;
use object::build::{Id, elf::*};
use object::elf::{PT_LOAD, SHF_ALLOC};
use std::collections::BTreeMap;

/// Section of the records that directives make.
pub const RECORDS: &[u8] = b".heddle.predict";

/// Bytes of the largest file that is written: twice the largest memory.
const MOST_BYTES: u64 = 128 << 20;

/// The file, and what it no longer has.
pub fn write(mut linked: Linked, layout: &Layout) -> Result<(Vec<u8>, Vec<String>), PredictError> {
    let dropped = data(&mut linked, layout)?;
    got(&mut linked, layout)?;
    symbols(&mut linked, layout);
    for number in 0..linked.sections.len() {
        if linked.sections[number].executable {
            let words = layout.words(&linked, number)?;
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let id = linked.sections[number].id;
            linked.builder.sections.get_mut(id).data = SectionData::Data(bytes.into());
        }
    }
    let entry = linked.builder.header.e_entry as u32;
    let section = linked.sections.iter().position(|s| s.executable && s.address <= entry && entry - s.address < s.size);
    linked.builder.header.e_entry = layout.start(To { section, address: entry }).into();
    segments(&mut linked, layout)?;
    for section in linked.builder.sections.iter_mut() {
        section.delete |= matches!(section.data, SectionData::Relocation(_)) || section.name.as_slice() == RECORDS;
    }
    let mut bytes = Vec::new();
    linked.builder.write(&mut bytes).map_err(|error| PredictError::File { what: error.to_string() })?;
    Ok((bytes, dropped))
}

/// Fields of data grow by as much as what they add up. Names the sections, not in memory, where one is too small for
/// that.
fn data(linked: &mut Linked, layout: &Layout) -> Result<Vec<String>, PredictError> {
    struct Sum {
        bits: u32,
        old: i64,
        new: i64,
    }
    let mut sums: BTreeMap<(usize, u32), (SectionId, Sum)> = BTreeMap::new();
    for &(id, offset, term, to) in &linked.terms {
        let mine = linked.number(id);
        // In memory an address may be where a jump goes; elsewhere it is only looked up.
        let mut new = i64::from(if mine.is_some() { layout.for_jump(to) } else { layout.start(to) });
        let mut old = i64::from(to.address);
        if let Some(number) = mine.filter(|_| term.relative) {
            let here = linked.sections[number].address.wrapping_add(offset);
            old -= i64::from(here);
            new -= i64::from(layout.start(To { section: mine, address: here }));
        }
        let sign = if term.negative { -1 } else { 1 };
        let empty = || (id, Sum { bits: term.bits, old: 0, new: 0 });
        let (_, sum) = sums.entry((id.index(), offset)).or_insert_with(empty);
        if sum.bits != term.bits {
            let address = (linked.builder.sections.get(id).sh_addr as u32).wrapping_add(offset);
            return Err(PredictError::Relocation { address, what: "is of a field with another size".into() });
        }
        sum.old += sign * old;
        sum.new += sign * new;
    }
    let mut dropped = Vec::new();
    for ((_, offset), (id, sum)) in sums {
        let in_memory = linked.number(id);
        // An instruction of an executable section is where it now lies.
        if in_memory.is_some_and(|number| linked.sections[number].executable) {
            let address = (linked.builder.sections.get(id).sh_addr as u32).wrapping_add(offset);
            if sum.old == sum.new {
                continue;
            }
            return Err(PredictError::Relocation { address, what: "is of data among instructions".into() });
        }
        let section = linked.builder.sections.get_mut(id);
        if section.delete || sum.old == sum.new {
            continue;
        }
        let SectionData::Data(data) = &mut section.data else { continue };
        let bytes = sum.bits.div_ceil(8) as usize;
        let field = &mut data.to_mut()[offset as usize..][..bytes];
        let mut all = [0; 8];
        all[..bytes].copy_from_slice(field);
        let all = u64::from_le_bytes(all);
        let mask = u64::MAX >> (64 - sum.bits);
        let value = (all & mask).wrapping_add((sum.new - sum.old) as u64);
        // A difference of fewer bits than an address may no longer fit.
        if sum.bits < 32 && value & !mask != 0 {
            let name = String::from_utf8_lossy(section.name.as_slice()).into_owned();
            if in_memory.is_some() {
                let address = (section.sh_addr as u32).wrapping_add(offset);
                return Err(PredictError::Relocation { address, what: "is of a field too small for its value".into() });
            }
            section.delete = true;
            dropped.push(name);
            continue;
        }
        field.copy_from_slice(&(all & !mask | value & mask).to_le_bytes()[..bytes]);
    }
    Ok(dropped)
}

/// Places of the global offset table that code refers to.
fn got(linked: &mut Linked, layout: &Layout) -> Result<(), PredictError> {
    let mut places = Vec::new();
    for (&pc, &(field, _)) in &linked.fields {
        let Field::Lower(format) = field else { continue };
        if let Some((upper, Field::UpperOfGot, of)) = linked.upper_of(pc) {
            let place = linked.place_of_data(linked.got_place(upper, pc, format)).expect("it was checked");
            places.push((place, layout.for_jump(of)));
        }
    }
    for ((number, offset), value) in places {
        let section = linked.builder.sections.get_mut(linked.sections[number].id);
        if let SectionData::Data(data) = &mut section.data {
            data.to_mut()[offset as usize..][..4].copy_from_slice(&value.to_le_bytes());
        }
    }
    Ok(())
}

fn symbols(linked: &mut Linked, layout: &Layout) {
    let numbers: BTreeMap<usize, usize> =
        linked.sections.iter().enumerate().map(|(number, section)| (section.id.index(), number)).collect();
    for symbol in linked.builder.symbols.iter_mut() {
        let number = symbol.section.and_then(|id| numbers.get(&id.index()).copied());
        let Some(number) = number.filter(|_| !is_undefined(symbol)) else { continue };
        let to = To { section: Some(number), address: symbol.st_value as u32 };
        if is_section(symbol) {
            symbol.st_value = layout.sections[number].address.into();
            continue;
        }
        if symbol.st_size > 0 && linked.sections[number].executable {
            let end = To { address: to.address.wrapping_add(symbol.st_size as u32), ..to };
            symbol.st_size = layout.end(end).wrapping_sub(layout.start(to)).into();
        }
        symbol.st_value = layout.start(to).into();
    }
}

/// Addresses of sections and segments, and where they lie in the file.
fn segments(linked: &mut Linked, layout: &Layout) -> Result<(), PredictError> {
    let headers = linked.builder.segments.iter_mut().fold(0, |count, segment| {
        segment.delete = segment.p_type != PT_LOAD || segment.p_memsz == 0;
        count + u64::from(!segment.delete)
    });
    linked.builder.header.e_phoff = linked.builder.file_header_size();
    let mut end = linked.builder.header.e_phoff + 32 * headers;
    let mut order: Vec<usize> = (0..linked.sections.len()).collect();
    order.sort_by_key(|&number| layout.sections[number].address);
    for segment in linked.builder.segments.iter_mut().filter(|segment| !segment.delete) {
        let mine: Vec<usize> =
            order.iter().copied().filter(|&n| linked.sections[n].segment == segment.id().index()).collect();
        let address = mine.first().map_or(segment.p_vaddr, |&number| layout.sections[number].address.into());
        let contents = mine.iter().map(|&number| &linked.sections[number]).filter(|section| section.contents);
        let align = contents.map(|section| u64::from(section.align)).max().unwrap_or(1).max(GRAIN);
        segment.p_align = align;
        segment.p_offset = end.next_multiple_of(align) + address % align;
        if segment.p_offset - align >= end {
            segment.p_offset -= align;
        }
        (segment.p_vaddr, segment.p_paddr) = (address, address);
        (segment.p_filesz, segment.p_memsz) = (0, segment.p_memsz.min(if mine.is_empty() { u64::MAX } else { 0 }));
        for number in mine {
            let section = linked.builder.sections.get_mut(linked.sections[number].id);
            let placed = &layout.sections[number];
            section.sh_addr = placed.address.into();
            section.sh_size = placed.size.into();
            section.sh_offset = segment.p_offset + (section.sh_addr - address);
            segment.p_memsz = section.sh_addr + section.sh_size - address;
            if linked.sections[number].contents {
                segment.p_filesz = segment.p_memsz;
            }
        }
        end = segment.p_offset + segment.p_filesz;
        if end > MOST_BYTES {
            return Err(PredictError::File { what: format!("the new file would have {end} bytes") });
        }
    }
    // What is empty and in no segment.
    let numbers: Vec<usize> = linked.sections.iter().map(|section| section.id.index()).collect();
    for section in linked.builder.sections.iter_mut() {
        if section.sh_flags.contains(SHF_ALLOC) && !numbers.contains(&section.id().index()) {
            section.delete = true;
        }
    }
    Ok(())
}
