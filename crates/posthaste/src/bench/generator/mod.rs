//! The load process: one thread, non-blocking sockets, requests that are ready in bytes. It talks to the bench's own
//! servers on this machine and to nobody else, and must cost less than what it measures.

mod drip;
mod event_loop;
mod pull;
mod requests;
mod tally;

use std::{
    io::{Read, Write},
    time::Duration,
};

use anyhow::Context;

use self::tally::{Tally, Window};
use super::plan::{Load, Outcome, Plan};

/// Does what standard input says, and tells on standard output what came of it.
pub(super) fn run() -> anyhow::Result<()> {
    let mut plan = String::new();
    std::io::stdin().read_to_string(&mut plan)?;
    let plan: Plan = serde_json::from_str(&plan).context("the plan is not understood")?;
    // Where the limit can't be raised, connecting says so.
    let _ = rlimit::increase_nofile_limit(u64::MAX);
    let outcome = carry_out(plan)?;
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, &outcome)?;
    out.flush()?;
    Ok(())
}

fn carry_out(plan: Plan) -> anyhow::Result<Outcome> {
    let milliseconds = Duration::from_millis;
    let window = Window::new(milliseconds(plan.warm_up_ms), milliseconds(plan.measured_ms));
    let mut outcome = match plan.load {
        Load::Requests { templates, salt, per_second, limit } => {
            let mut driver = requests::Requests::new(&templates, salt, window)?;
            driver.pace(per_second);
            driver.limit(limit);
            event_loop::drive(plan.address, plan.connections, &mut driver)?
        }
        Load::Pull { queue, batch, api_key, wait } => {
            let mut driver = pull::Pull::new(&queue, batch, &api_key, plan.connections, window);
            driver.wait(wait.as_deref());
            event_loop::drive(plan.address, plan.connections, &mut driver)?
        }
        Load::Drip { part, request } => drip::run(plan.address, plan.connections, part, &request, window)?,
    };
    outcome.cpu_seconds = super::process::cpu_seconds(std::process::id());
    Ok(outcome)
}
