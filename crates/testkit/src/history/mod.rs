//! A history of what was seen from outside of a server, and a judge of it.
//!
//! A harness loads a server, kills it, starts it again, and writes down each call and each answer ([`record`]). [`judge`] reads
//! the whole and says which promises were broken. It knows the public contract alone, in strings and integers, and may use
//! nothing of the product: a fault of the rules that the product is built of must not be repeated here.
//!
//! What a harness must keep, for the verdict to hold: no replays, no resends, no cancels by an operator; retry budgets that are
//! never exhausted; leases that an extension only makes longer; `webhook_id = "job"`.

mod checker;
mod index;
mod kinds;
pub mod record;
mod rules;

pub use checker::{Verdict, Violation, judge};
pub use kinds::{Rule, Seen};
