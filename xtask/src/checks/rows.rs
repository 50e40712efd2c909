//! Tests name the requirement that they hold up: `r_b9_replay_names_the_attempt` is a test of row B9.
//!
//! A test of two rows names both: `r_a4_b9_…`. The names are read from the code, not from comments.

use std::collections::BTreeMap;

use crate::{finding::Finding, rust_file::RustFile};

/// The rows there are: a letter and how many it has.
const ROWS: &[(char, u8)] = &[('A', 11), ('B', 16), ('C', 11), ('D', 5), ('E', 5), ('F', 8), ('G', 7)];

/// A row, such as (`B`, 9).
type Row = (char, u8);

/// Names that start like a row's and are not one: `r_h1_…`, `r_b99_…`, `r_b9` with nothing after it.
pub(crate) fn check(file: &RustFile<'_>) -> Vec<Finding> {
    let wrong = names(file).filter(|name| rows_of(name.text).is_empty());
    wrong
        .map(|name| {
            Finding::at(
                file.path,
                name.line,
                format!("`{}` is no row and a sentence: `r_b9_what_holds`", name.text),
            )
        })
        .collect()
}

/// For each row, in order, the names of its tests.
pub(crate) fn coverage<'a>(files: &[RustFile<'a>]) -> BTreeMap<Row, Vec<&'a str>> {
    let all = ROWS.iter().flat_map(|&(letter, count)| (1..=count).map(move |number| (letter, number)));
    let mut table: BTreeMap<Row, Vec<&str>> = all.map(|row| (row, Vec::new())).collect();
    for name in files.iter().flat_map(names) {
        for row in rows_of(name.text) {
            table.entry(row).or_default().push(name.text);
        }
    }
    table
}

/// Functions and modules named after a row, right or wrong.
fn names<'a>(file: &RustFile<'a>) -> impl Iterator<Item = crate::lexer::Token<'a>> {
    let pairs = file.code.windows(2).filter(|pair| matches!(pair[0].text, "fn" | "mod"));
    pairs.map(|pair| pair[1]).filter(|name| {
        name.text.strip_prefix("r_").is_some_and(|rest| {
            let mut rest = rest.chars();
            rest.next().is_some_and(|c| c.is_ascii_alphabetic())
                && rest.next().is_some_and(|c| c.is_ascii_digit())
        })
    })
}

/// The rows at the start of a name that goes on after them; empty if the name is malformed.
fn rows_of(name: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut rest = name.strip_prefix("r_").unwrap_or_default();
    while let Some((first, after)) = rest.split_once('_')
        && let Some(row) = row(first)
    {
        rows.push(row);
        rest = after;
    }
    if rest.is_empty() || row(rest).is_some() { Vec::new() } else { rows }
}

fn row(text: &str) -> Option<Row> {
    let letter = text.chars().next().filter(char::is_ascii_lowercase)?.to_ascii_uppercase();
    let digits = text.get(1..).filter(|digits| !digits.starts_with(['0', '+']))?;
    let number = digits.parse().ok()?;
    ROWS.iter().any(|&(known, count)| known == letter && number <= count).then_some((letter, number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::File;

    #[test]
    fn names_tell_their_rows() {
        assert_eq!(rows_of("r_b9_replay_names_the_attempt"), [('B', 9)]);
        assert_eq!(rows_of("r_a4_b16_one_answer"), [('A', 4), ('B', 16)]);
        assert_eq!(rows_of("r_e1_s3_is_text_here"), [('E', 1)]);
        for name in
            ["r_b9", "r_b9_", "r_a1_b9", "r_h1_x", "r_b17_x", "r_b0_x", "r_b09_x", "r_B9_x", "r_b9x_y"]
        {
            assert_eq!(rows_of(name), [], "{name}");
        }
    }

    #[test]
    fn malformed_names_are_found_and_well_formed_ones_counted() {
        let text =
            "#[test] fn r_b9_holds() {} fn r_b99_no_such_row() {} fn r_squared() {} // fn r_h1_comment\n";
        let file = File { path: "a.rs".to_owned(), text: text.to_owned() };
        let files = [RustFile::new(&file)];
        assert_eq!(check(&files[0]).len(), 1);
        let table = coverage(&files);
        assert_eq!(table.len(), 63);
        assert_eq!(table[&('B', 9)], ["r_b9_holds"]);
        assert!(table[&('A', 1)].is_empty());
    }
}
