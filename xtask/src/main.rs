//! Chores of this repository: `tidy` checks its rules, `golden` blesses its golden files.
//!
//! Each rule is a pure function over data in [`checks`]; reading the disk and running cargo happen in
//! [`tree`], [`metadata`] and [`golden`]. Nothing here is part of the product.
#![expect(clippy::print_stdout, reason = "a command-line chore talks on standard output")]

mod checks;
mod finding;
mod golden;
mod lexer;
mod metadata;
mod rust_file;
mod tidy;
mod tree;

use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo run -p xtask -- COMMAND

  tidy             check the rules of the repository; fails when one is broken
  tidy --rows      print which requirement rows the tests name
  golden [ARG...]  write the golden files anew; ARGs go to `cargo test`
";

fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["tidy"] => tidy::check(),
        ["tidy", "--rows"] => tidy::print_rows(),
        ["golden", rest @ ..] => golden::bless(rest),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            print!("{USAGE}");
            Ok(ExitCode::from(2))
        }
    }
}
