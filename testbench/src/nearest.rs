//! Which of the names that there are was probably meant.

/// The name that is most like another, the first of several, if it is like it at all.
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let likeness = |other: &&str| strsim::jaro_winkler(&name, &other.to_lowercase());
    let names: Vec<&str> = names.into_iter().collect();
    // Of equals, `max_by` has the last.
    names.into_iter().rev().max_by(|a, b| likeness(a).total_cmp(&likeness(b))).filter(|other| likeness(other) > 0.7)
}

/// The end of a message that names it.
pub fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_mistake_is_found_and_another_is_not() {
        let names = ["lanes", "warps", "length"];
        assert_eq!(nearest("lane", names), Some("lanes"));
        assert_eq!(nearest("Lenght", names), Some("length"));
        assert_eq!(nearest("zzz", names), None);
        assert_eq!(nearest("fil", ["type", "fill", "file"]), Some("fill"));
        assert_eq!(suggestion(nearest("warp", names)), "; did you mean `warps`?");
        assert_eq!(suggestion(None), "");
    }
}
