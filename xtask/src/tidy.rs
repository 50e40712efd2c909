//! `tidy`: reads the repository once, asks every check, prints what they found.

use std::process::ExitCode;

use crate::{
    checks::{clients, clock, field_cases, floors, lengths, links, module_docs, rows, skips, sql, words},
    finding::Finding,
    metadata::{self, Metadata, Shipped},
    rust_file::RustFile,
    tree::{self, File},
};

/// Prints every broken rule; fails if there is one.
pub(crate) fn check() -> anyhow::Result<ExitCode> {
    let files = tree::read()?;
    let mut findings = check_files(&files);
    let shipped = metadata::shipped(&[floors::TESTKIT, floors::XTASK])?;
    findings.extend(check_crates(&Metadata::load()?, &shipped, &files));
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} findings in {} files", findings.len(), files.len());
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints each requirement row with the tests that name it.
pub(crate) fn print_rows() -> anyhow::Result<ExitCode> {
    let files = tree::read()?;
    let table = rows::coverage(&rust_files(&files));
    for ((letter, number), tests) in &table {
        println!("{:4} {:4}  {}", format!("{letter}{number}"), tests.len(), some(tests));
    }
    let covered = table.values().filter(|tests| !tests.is_empty()).count();
    println!("{covered} of {} rows are named by a test", table.len());
    Ok(ExitCode::SUCCESS)
}

/// Enough names to recognise a row's tests by.
fn some(tests: &[&str]) -> String {
    let shown = &tests[..tests.len().min(2)];
    let more = if tests.len() > shown.len() { ", …" } else { "" };
    shown.join(", ") + more
}

fn rust_files(files: &[File]) -> Vec<RustFile<'_>> {
    files.iter().filter(|file| file.has_extension("rs")).map(RustFile::new).collect()
}

fn check_files(files: &[File]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = files.iter().flat_map(words::check).collect();
    for file in files.iter().filter(|file| file.has_extension("md")) {
        findings.extend(links::check(file, files));
    }
    for file in files.iter().filter(|file| file.has_extension("sql")) {
        findings.extend(sql::check_file(file));
    }
    let rust = rust_files(files);
    findings.extend(field_cases::check(files, &rust));
    for file in &rust {
        findings.extend(module_docs::check(file));
        findings.extend(lengths::check(file));
        findings.extend(clients::check_file(file));
        findings.extend(clock::check(file));
        findings.extend(sql::check_literals(file));
        findings.extend(rows::check(file));
        findings.extend(skips::check(file));
    }
    findings
}

fn check_crates(metadata: &Metadata, shipped: &Shipped, files: &[File]) -> Vec<Finding> {
    let mut findings = floors::check(metadata);
    findings.extend(clients::check_packages(shipped));
    findings.extend(links::check_floors_table(files, &floors::short_names(metadata)));
    findings
}
