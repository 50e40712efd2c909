//! Exhaustive models of the protocol over the real functions: `posthaste_core::transition` and the ledger's.
//!
//! The models know who can do what when: workers, crashes, reports that come late or twice, operators, time as
//! chance. They know no rule: each decision is asked of core, each row is written as core says. So a broken promise
//! here is an interleaving in which core is wrong, and the report names a shortest one. `mutants` are the same
//! functions with one rule left out; a model that does not catch them proves nothing.
//!
//! May use `posthaste_core` and the standard library only.

mod checker;
mod desk;
mod job_row;
mod ledger;
mod ledger_mutants;
mod ledger_row;
mod mutants;
mod property;
mod report;
mod restore;
mod rules;
mod sender;
mod sentences;
mod table;
mod whole;
mod wire;

pub use checker::{Edge, Model, Nature, Step, explore, find};
pub use desk::Allowance;
pub use ledger::{LedgerConfig, LedgerExtra, LedgerModel, LedgerState, Mode, Retention};
pub use ledger_mutants::LedgerMutant;
pub use mutants::SenderMutant;
pub use property::{Properties, Property, Witness, Witnesses};
pub use report::{Report, Violation};
pub use restore::{RestoreModel, RestoreState};
pub use sender::{Extra, LookUps, SenderConfig, SenderModel, State as SenderState, Unknown};
pub use whole::{Effects, Ledger, Pin, WholeConfig, WholeExtra, WholeModel, WholeState};
