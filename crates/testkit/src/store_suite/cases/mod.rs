//! The cases, by what they are about.

mod accept;
mod commands;
mod configure;
mod fan_out;
mod lease;
mod ledger;
mod lists;
mod operator;
mod reports;
mod retention;
mod tenants;
mod untold;

use super::Case;

/// Every group of cases, by name.
pub fn groups() -> Vec<(&'static str, &'static [Case])> {
    vec![
        ("accept", accept::CASES),
        ("commands", commands::CASES),
        ("configure", configure::CASES),
        ("fan_out", fan_out::CASES),
        ("lease", lease::CASES),
        ("ledger", ledger::CASES),
        ("lists", lists::CASES),
        ("operator", operator::CASES),
        ("reports", reports::CASES),
        ("retention", retention::CASES),
        ("tenants", tenants::CASES),
        ("untold", untold::CASES),
    ]
}
