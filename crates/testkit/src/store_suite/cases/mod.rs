//! The cases, by what they are about.

mod accept;
mod bulk;
mod commands;
mod configure;
mod fan_out;
mod lanes;
mod lease;
mod ledger;
mod lists;
mod operator;
mod reports;
mod retention;
mod schedules;
mod tenants;
mod unsettled;
mod untold;

use super::Case;

/// Every group of cases, by name.
pub fn groups() -> Vec<(&'static str, &'static [Case])> {
    vec![
        ("accept", accept::CASES),
        ("bulk", bulk::CASES),
        ("commands", commands::CASES),
        ("configure", configure::CASES),
        ("fan_out", fan_out::CASES),
        ("lanes", lanes::CASES),
        ("lease", lease::CASES),
        ("ledger", ledger::CASES),
        ("lists", lists::CASES),
        ("operator", operator::CASES),
        ("reports", reports::CASES),
        ("retention", retention::CASES),
        ("schedules", schedules::CASES),
        ("tenants", tenants::CASES),
        ("unsettled", unsettled::CASES),
        ("untold", untold::CASES),
    ]
}
