//! `states` and `classes`: what the words mean, from the core's own tables.

use posthaste_core::{
    CLASS_RULES, Cause, Class, Disposition, Effect, Reading, STATUS_RULES, StateName, StatusRule,
};
use serde_json::{Value, json};

use super::{
    OutputArgs,
    exit::{Failure, Outcome},
    output,
};

/// What a state means.
pub(super) fn meaning(state: StateName) -> &'static str {
    match state {
        StateName::Scheduled => {
            "waits for its due time; no attempt has failed yet, or it was sent round again"
        }
        StateName::Leased => "one attempt is running",
        StateName::Retryable => "an attempt failed or was lost; the next one starts at the due time",
        StateName::Committed => "the receiver has it",
        StateName::DeadLettered => {
            "given up, with the cause; nothing happens until a person or evidence leads on"
        }
        StateName::Cancelled => "called off; final",
    }
}

/// What an operator can do with a job in a state.
pub(super) fn action(state: StateName) -> &'static str {
    match state {
        StateName::Scheduled | StateName::Retryable => "wait for it, or `jobs cancel`",
        StateName::Leased => "wait for it; `jobs cancel` asks the worker to stop",
        StateName::Committed => "nothing to do; `jobs resend` if the receiver lost it",
        StateName::Cancelled => "nothing to do",
        StateName::DeadLettered => "mend the cause, then `jobs replay`; `jobs cancel` discards it",
    }
}

fn cause_meaning(cause: Cause) -> &'static str {
    match cause {
        Cause::Exhausted => "all attempts failed, or the time for them ran out",
        Cause::Permanent => "the receiver will never take it",
        Cause::InvalidPayload => "it was authentic, but of unexpected shape",
        Cause::MissingKey => "no key could be derived from it",
        Cause::KeyReused => "its key was used before for another payload",
        Cause::OutcomeUnknown => "it may have happened, and the destination wants no second try",
        Cause::EndpointGone => "the endpoint was deleted, or answered 410",
        Cause::LeaseLost => "its workers vanished too often",
    }
}

fn effect_meaning(effect: Effect) -> &'static str {
    match effect {
        Effect::None => "it can't have happened",
        Effect::Possible => "it may have happened, or may still",
        Effect::Reported => "the receiver or worker says that it happened",
        Effect::Confirmed => "the receiver's ledger says that it happened",
    }
}

fn follows(disposition: Disposition) -> &'static str {
    match disposition {
        Disposition::Retry => "tried again after a delay; charged",
        Disposition::InProgress => "asked again later; not charged",
        Disposition::PermanentMessage => "dead-lettered: the message is at fault",
        Disposition::PermanentDestination => "dead-lettered: the destination refuses us",
        Disposition::Gone => "dead-lettered, and the endpoint is disabled",
    }
}

pub(super) fn states(args: OutputArgs) -> Result<Outcome, Failure> {
    if args.json {
        let states = StateName::ALL.iter().map(
            |state| json!({ "state": state.as_str(), "meaning": meaning(*state), "action": action(*state) }),
        );
        let causes = Cause::ALL
            .iter()
            .map(|cause| json!({ "cause": cause.as_str(), "meaning": cause_meaning(*cause) }));
        let (states, causes): (Value, Value) = (states.collect(), causes.collect());
        return output::json(&json!({ "states": states, "dead_letter_causes": causes }));
    }
    let states = StateName::ALL.iter().map(|state| texts(&[state.as_str(), meaning(*state), action(*state)]));
    output::table(&["STATE", "MEANS", "YOU CAN"], states.collect())?;
    output::text("")?;
    let causes = Cause::ALL.iter().map(|cause| texts(&[cause.as_str(), cause_meaning(*cause)]));
    output::table(&["DEAD-LETTERED BECAUSE", "MEANS"], causes.collect())
}

pub(super) fn classes(args: OutputArgs) -> Result<Outcome, Failure> {
    let answers = STATUS_RULES.iter().map(|rule| (statuses(*rule), rule.reading));
    if args.json {
        let answers = answers.map(|(answer, reading)| match reading {
            Reading::Accepted => json!({ "answer": answer, "outcome": "committed" }),
            Reading::Failed(read) => json!({ "answer": answer, "class": read.class.as_str(),
                "effect": read.effect.as_str(), "follows": read.disposition.as_str() }),
        });
        let classes = CLASS_RULES.iter().map(|(class, effect, disposition)| {
            json!({ "class": class.as_str(), "meaning": class_meaning(*class), "effect": effect.as_str(),
                "follows": disposition.as_str() })
        });
        let (answers, classes): (Value, Value) = (answers.collect(), classes.collect());
        return output::json(&json!({ "answers": answers, "classes": classes }));
    }
    let answers = answers.map(|(answer, reading)| match reading {
        Reading::Accepted => texts(&[&answer, "-", Effect::Reported.as_str(), "committed"]),
        Reading::Failed(read) => {
            texts(&[&answer, read.class.as_str(), read.effect.as_str(), follows(read.disposition)])
        }
    });
    output::table(&["ANSWER", "CLASS", "EFFECT", "WHAT FOLLOWS"], answers.collect())?;
    output::text("The first line that fits decides.\n")?;
    let classes = CLASS_RULES.iter().map(|(class, effect, disposition)| {
        texts(&[class.as_str(), class_meaning(*class), effect.as_str(), follows(*disposition)])
    });
    output::table(&["CLASS", "MEANS", "EFFECT", "WHAT FOLLOWS"], classes.collect())?;
    output::text("A request of which no byte left has no effect, whatever its class.\n")?;
    let effects = Effect::ALL.iter().map(|effect| texts(&[effect.as_str(), effect_meaning(*effect)]));
    output::table(&["EFFECT", "MEANS"], effects.collect())
}

fn class_meaning(class: Class) -> &'static str {
    match class {
        Class::Timeout => "nothing came back in time",
        Class::Connect => "no connection: refused or unreachable",
        Class::Reset => "the connection broke after the request had left",
        Class::Dns => "the name did not resolve",
        Class::Tls => "no trusted TLS channel",
        Class::Blocked => "our own guard refused the address",
        Class::Throttled => "the receiver asked us to slow down",
        Class::InProgress => "somebody else is doing this very work",
        Class::ServerError => "the receiver failed",
        Class::ClientError => "the receiver refused the request",
        Class::Redirect => "the receiver pointed elsewhere; redirects are not followed",
        Class::Protocol => "the answer was no HTTP, or no final status",
        Class::Worker => "a worker said that it failed",
        Class::LeaseLost => "the lease ran out",
        Class::Other => "none of the others",
    }
}

fn statuses(rule: StatusRule) -> String {
    let range = match rule.statuses {
        (from, to) if from == to => from.to_string(),
        (0, u16::MAX) => "any other".to_owned(),
        (from, to) => format!("{from}-{to}"),
    };
    if rule.with_retry_after { format!("{range} with Retry-After") } else { range }
}

fn texts(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}
