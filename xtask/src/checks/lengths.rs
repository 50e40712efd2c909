//! A function fits a screen, a file a sitting.

use super::Listed;
use crate::{
    finding::Finding,
    rust_file::{self, RustFile},
};

const FILE_LINES_MAX: usize = 500;
const TEST_FILE_LINES_MAX: usize = 900;
const FUNCTION_LINES_MAX: usize = 60;
const TEST_FUNCTION_LINES_MAX: usize = 120;

/// Files that may be longer, such as generated ones.
const LONG_FILES: &[Listed] = &[];
/// Functions that may be longer, as `path::name`.
const LONG_FUNCTIONS: &[Listed] = &[];

/// Files and functions over their limit.
pub(crate) fn check(file: &RustFile<'_>) -> Vec<Finding> {
    let long = functions(file).into_iter().filter(|function| function.lines > function.lines_max);
    let long =
        long.filter(|function| !is_excepted(LONG_FUNCTIONS, &format!("{}::{}", file.path, function.name)));
    let mut findings: Vec<_> = long
        .map(|function| {
            let Function { name, line, lines, lines_max } = function;
            Finding::at(file.path, line, format!("fn {name} has {lines} lines, more than {lines_max}"))
        })
        .collect();
    let (lines, lines_max) = (file.text.lines().count(), file_lines_max(file));
    if lines > lines_max && !is_excepted(LONG_FILES, file.path) {
        findings.push(Finding::whole(
            file.path,
            format!("has {lines} lines, more than {lines_max}: split it by noun"),
        ));
    }
    findings
}

fn file_lines_max(file: &RustFile<'_>) -> usize {
    if file.is_test_file() { TEST_FILE_LINES_MAX } else { FILE_LINES_MAX }
}

fn is_excepted(list: &[Listed], place: &str) -> bool {
    list.iter().any(|exception| exception.what == place && !exception.reason.is_empty())
}

#[derive(Debug, PartialEq, Eq)]
struct Function<'a> {
    name: &'a str,
    line: usize,
    /// From `fn` to the closing brace.
    lines: usize,
    lines_max: usize,
}

fn functions<'a>(file: &RustFile<'a>) -> Vec<Function<'a>> {
    let code = &file.code;
    let starts =
        code.windows(2).enumerate().filter(|(_, pair)| pair[0].text == "fn" && is_name(pair[1].text));
    starts
        .filter_map(|(at, pair)| {
            let end = rust_file::after_group(code, rust_file::body_of(code, at)?) - 1;
            let lines = code.get(end)?.line - pair[0].line + 1;
            let lines_max = if file.is_test(at) { TEST_FUNCTION_LINES_MAX } else { FUNCTION_LINES_MAX };
            Some(Function { name: pair[1].text, line: pair[0].line, lines, lines_max })
        })
        .collect()
}

/// `fn(u8)` is a type and `fn $name` a macro's; neither is a function.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first == '_' || first.is_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::File;

    fn of(path: &str, text: String) -> Vec<String> {
        let file = File { path: path.to_owned(), text };
        check(&RustFile::new(&file)).iter().map(ToString::to_string).collect()
    }

    fn function(lines: usize) -> String {
        format!("fn a(x: [u8; 2]) -> u8 {{\n{}}}\n", "    \"}\"; // }\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_of_sixty_lines_fits_and_one_of_sixty_one_does_not() {
        assert_eq!(of("crates/core/src/a.rs", function(60)), [""; 0]);
        assert_eq!(
            of("crates/core/src/a.rs", function(61)),
            ["crates/core/src/a.rs:1: fn a has 61 lines, more than 60"]
        );
    }

    #[test]
    fn tests_may_be_twice_as_long() {
        let test = |lines| format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(lines));
        assert_eq!(of("crates/core/src/a.rs", test(120)), [""; 0]);
        assert_eq!(of("crates/core/src/a.rs", test(121)).len(), 1);
        assert_eq!(of("crates/core/tests/a.rs", function(120)), [""; 0]);
    }

    #[test]
    fn a_nested_function_is_measured_by_itself_too() {
        let nested = format!("fn outer() {{\n{}}}\n", function(61));
        assert_eq!(of("a.rs", nested).len(), 2);
    }

    #[test]
    fn declarations_and_pointers_are_no_functions() {
        let text =
            "trait T { fn a(&self); }\ntype F = fn(u8) -> u8;\nmacro_rules! m { () => { fn $name() {} } }\n";
        let file = File { path: "a.rs".to_owned(), text: text.to_owned() };
        assert_eq!(functions(&RustFile::new(&file)), []);
    }

    #[test]
    fn long_files_are_refused() {
        assert_eq!(of("crates/core/src/a.rs", "//\n".repeat(500)), [""; 0]);
        assert_eq!(of("crates/core/src/a.rs", "//\n".repeat(501)).len(), 1);
        assert_eq!(of("crates/core/tests/a.rs", "//\n".repeat(900)), [""; 0]);
        assert_eq!(of("crates/core/tests/a.rs", "//\n".repeat(901)).len(), 1);
    }
}
