//! Faults that others met in the field: each is held by a test, or waits for what it is about.
//!
//! The map is data, one JSON object a line. It names every case, and every test that is named after a case stands in it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::{finding::Finding, rust_file::RustFile, tree::File};

/// Where the map is.
const MAP: &str = "crates/testkit/data/field-cases.jsonl";

/// Where tests stand that are no test items: each of them is run over every store.
const SUITE: &str = "crates/testkit/src/store_suite/cases/";

/// Every case. Numbers that are left out never were.
const CASES: &[u8] = &[
    1, 3, 4, 5, 6, 7, 10, 11, 12, 14, 15, 16, 17, 19, 20, 22, 23, 24, 25, 27, 29, 32, 33, 35, 36, 37, 39, 40,
    42, 43, 44, 48, 49, 51, 52, 54, 55, 57, 58, 60,
];

/// One line of the map.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    /// Its area.
    about: String,
    /// What went wrong, in a sentence.
    what: String,
    /// Tests that hold it.
    tests: Vec<String>,
    /// What it waits for, as far as it does.
    later: Option<String>,
}

/// What is wrong with the map, and which tests it leaves out.
pub(crate) fn check(files: &[File], rust: &[RustFile<'_>]) -> Vec<Finding> {
    let Some(map) = files.iter().find(|file| file.path == MAP) else {
        return vec![Finding::whole(MAP, "the map of field cases is not there".to_owned())];
    };
    let tests = tests(rust);
    let mut findings = Vec::new();
    let mut listed: BTreeMap<String, usize> = BTreeMap::new();
    let mut held: BTreeSet<String> = BTreeSet::new();
    for (at, line) in map.text.lines().enumerate() {
        let mut say = |text: String| findings.push(Finding::at(MAP, at + 1, text));
        let case: Case = match serde_json::from_str(line) {
            Ok(case) => case,
            Err(error) => {
                say(format!("is no case: {error}"));
                continue;
            }
        };
        if !CASES.iter().any(|number| name(*number) == case.id) {
            say(format!("{} is no case", case.id));
        }
        if let Some(first) = listed.insert(case.id.clone(), at + 1) {
            say(format!("{} stands at line {first} already", case.id));
        }
        if case.about.is_empty() || case.what.is_empty() || case.later.as_ref().is_some_and(String::is_empty)
        {
            say(format!("{} says nothing where it should", case.id));
        }
        if case.tests.is_empty() && case.later.is_none() {
            say(format!("{} has neither a test nor what it waits for", case.id));
        }
        for test in &case.tests {
            if !tests.contains_key(test.as_str()) {
                say(format!("{} names `{test}`, which is no test", case.id));
            }
            if let Some(other) = case_of(test).filter(|other| *other != case.id) {
                say(format!("{} names `{test}`, which is named after {other}", case.id));
            }
        }
        held.extend(case.tests);
    }
    for number in CASES.iter().filter(|number| !listed.contains_key(&name(**number))) {
        findings.push(Finding::whole(MAP, format!("{} is left out", name(*number))));
    }
    for (test, (path, line)) in tests.iter().filter(|(test, _)| case_of(test).is_some()) {
        if !held.contains(*test) {
            findings.push(Finding::at(path, *line, format!("`{test}` is left out of {MAP}")));
        }
    }
    findings
}

/// Every test by its name, with where it is.
fn tests<'a>(rust: &[RustFile<'a>]) -> BTreeMap<&'a str, (&'a str, usize)> {
    let mut tests = BTreeMap::new();
    for file in rust {
        for (at, pair) in file.code.windows(2).enumerate() {
            if pair[0].text == "fn" && (file.is_test(at) || file.path.starts_with(SUITE)) {
                tests.insert(pair[1].text, (file.path, pair[1].line));
            }
        }
    }
    tests
}

fn name(number: u8) -> String {
    format!("B{number:02}")
}

/// `case_b07_…` and `r_a3_case_b07_…` are of B07.
fn case_of(test: &str) -> Option<String> {
    let (before, rest) = test.split_once("case_b")?;
    let digits = rest.split('_').next().filter(|digits| !digits.is_empty())?;
    let named = before.is_empty() || before.ends_with('_');
    (named && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| format!("B{digits}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    /// What is found where every case waits, but for what `change` does to the lines.
    fn found(change: impl FnOnce(&mut Vec<String>), code: &str) -> Vec<String> {
        let line = |number: &u8| {
            format!(r#"{{"id":"{}","about":"a","what":"b","tests":[],"later":"c"}}"#, name(*number))
        };
        let mut lines: Vec<String> = CASES.iter().map(line).collect();
        change(&mut lines);
        let files = [file(MAP, &lines.join("\n")), file("crates/a/tests/a.rs", code)];
        let rust = [RustFile::new(&files[1])];
        check(&files, &rust).iter().map(ToString::to_string).collect()
    }

    fn with_tests(id: &str, tests: &str) -> String {
        format!(r#"{{"id":"{id}","about":"a","what":"b","tests":[{tests}]}}"#)
    }

    #[test]
    fn a_whole_map_is_fine() {
        assert_eq!(40, CASES.len());
        assert_eq!(found(|_| {}, ""), Vec::<String>::new());
        let holds =
            |lines: &mut Vec<String>| lines[0] = with_tests("B01", "\"case_b01_holds\", \"r_a1_too\"");
        assert_eq!(found(holds, "#[test] fn case_b01_holds() {} fn r_a1_too() {}"), Vec::<String>::new());
    }

    #[test]
    fn every_gap_is_found() {
        let says = |change: fn(&mut Vec<String>), code: &str, text: &str| {
            let found = found(change, code);
            assert!(found.len() == 1 && found[0].contains(text), "{text}: {found:?}");
        };
        says(|lines| drop(lines.remove(3)), "", "B05 is left out");
        says(|lines| lines.push(lines[0].clone()), "", "B01 stands at line 1 already");
        says(|lines| lines.push(with_tests("B02", "\"x\"")), "fn x() {}", "B02 is no case");
        says(|lines| lines[0] = with_tests("B01", ""), "", "B01 has neither a test");
        says(
            |lines| lines[0] = with_tests("B01", "\"gone\""),
            "fn here() {}",
            "names `gone`, which is no test",
        );
        says(
            |lines| lines[0] = with_tests("B01", "\"case_b03_x\""),
            "fn case_b03_x() {}",
            "which is named after B03",
        );
        says(|_| {}, "fn r_a3_case_b03_x() {}", "`r_a3_case_b03_x` is left out");
        says(|lines| lines[0] = lines[0].replace("\"b\"", "\"\""), "", "B01 says nothing");
        says(|lines| lines.push("{}".to_owned()), "", "is no case: missing field");
    }

    #[test]
    fn what_is_no_test_holds_nothing() {
        let map: Vec<String> = CASES.iter().map(|number| with_tests(&name(*number), "\"helper\"")).collect();
        let files = [file(MAP, &map.join("\n")), file("crates/a/src/a.rs", "fn helper() {}")];
        let rust = [RustFile::new(&files[1])];
        assert_eq!(CASES.len(), check(&files, &rust).len());
        assert_eq!(1, check(&[], &[]).len());
    }
}
