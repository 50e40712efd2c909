//! `[[source]]`, `[[endpoint]]`, `[[queue]]` and `[[schedule]]`: read strictly, understood as the engine will, every mistake of each.

use std::collections::{BTreeSet, HashMap};

use posthaste_core::{Backoff, DestinationId, DurationMs, LaneId, TenantId};
use posthaste_engine::config::{
    ConfigError, EndpointSpec, OnUnknownSpec, QueueSpec, ScheduleSpec, SourceSpec, compile_endpoint,
    compile_queue, compile_schedule, compile_source, format_duration, look_up_sample,
};
use serde::de::DeserializeOwned;
use toml::{
    Deserializer, Spanned,
    de::{DeTable, DeValue},
};

use super::{
    document::{Document, Shown, span_of, spot_at},
    fault::{Fault, Place, Wrong, suggestion},
    references,
    settings::{Found, Layers, NOT_YET},
};

/// The tenant of what names none.
pub const TENANT_DEFAULT: &str = "default";

/// What a configuration declares, in the order of its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    /// Whose.
    pub tenant: String,
    /// What.
    pub spec: Spec,
    /// Where it stands.
    pub place: Place,
}

/// See [`Declared`].
#[derive(Clone, Debug, PartialEq)]
pub enum Spec {
    /// A source.
    Source(SourceSpec),
    /// An endpoint.
    Endpoint(EndpointSpec),
    /// A queue.
    Queue(QueueSpec),
    /// A schedule.
    Schedule(Box<ScheduleSpec>),
}

impl Spec {
    /// Its id or name.
    pub fn id(&self) -> &str {
        match self {
            Self::Source(source) => &source.name,
            Self::Endpoint(endpoint) => &endpoint.id,
            Self::Queue(queue) => &queue.name,
            Self::Schedule(schedule) => &schedule.name,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Source(_) => "source",
            Self::Endpoint(_) => "endpoint",
            Self::Queue(_) => "queue",
            Self::Schedule(_) => "schedule",
        }
    }

    /// The destinations that it names.
    fn to(&self) -> impl Iterator<Item = &String> {
        let to = match self {
            Self::Source(source) => source.to.as_ref(),
            Self::Schedule(schedule) => schedule.to.as_ref(),
            Self::Endpoint(_) | Self::Queue(_) => None,
        };
        to.into_iter().flat_map(|to| to.queue.iter().chain(to.endpoints.iter().flatten()))
    }

    /// Whose names it shares: schedules have names of their own.
    fn namespace(&self) -> &'static str {
        match self {
            Self::Source(_) | Self::Endpoint(_) | Self::Queue(_) => "destination",
            Self::Schedule(_) => "schedule",
        }
    }
}

/// Judges an endpoint's URL; the error says what is wrong and what would be right.
pub(super) type JudgeUrl<'a> = &'a dyn Fn(&str) -> Result<(), String>;

/// Reads all that `layers` declare. What is wrong is noted there.
pub(super) fn read(layers: &mut Layers<'_>, judge_url: JudgeUrl<'_>) -> Vec<Declared> {
    let mut declared = Vec::new();
    for kind in ["source", "endpoint", "queue", "schedule"] {
        let Some(found) = layers.take(kind) else { continue };
        let mut faults = Vec::new();
        let elements = elements(kind, &found, &mut faults);
        for element in elements {
            let one = match kind {
                "source" => element.read(&mut faults, check_source).map(Spec::Source),
                "endpoint" => {
                    element.read(&mut faults, |spec| check_endpoint(spec, judge_url)).map(Spec::Endpoint)
                }
                "queue" => element.read(&mut faults, check_queue).map(Spec::Queue),
                _ => element.read(&mut faults, check_schedule).map(|spec| Spec::Schedule(Box::new(spec))),
            };
            let place = element.document.place(&element.table.span());
            declared.extend(one.map(|spec| Declared { tenant: element.tenant, spec, place }));
        }
        layers.faults.extend(faults);
    }
    layers.faults.extend(taken_twice(&declared));
    declared
}

/// One table of a list, its tenant taken out.
struct Element<'i> {
    document: &'i Document,
    /// `endpoint[fan_17]`, or `endpoint[1]` for the first one without an id.
    path: String,
    table: Spanned<DeTable<'i>>,
    tenant: String,
}

fn elements<'i>(kind: &str, found: &Found<'i>, faults: &mut Vec<Fault>) -> Vec<Element<'i>> {
    let not_tables = || Wrong::new("a list of tables is expected", format!("begin each with [[{kind}]]"));
    let Some(items) = found.value.get_ref().as_array() else {
        faults.push(found.document.fault_at(kind, &found.key, Shown::Key, not_tables()));
        return Vec::new();
    };
    let mut elements = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let DeValue::Table(table) = item.get_ref() else {
            faults.push(found.document.fault_at(kind, &item.span(), Shown::Key, not_tables()));
            continue;
        };
        let mut table = table.clone();
        let id = ["id", "name"].iter().find_map(|key| table.get(*key)?.get_ref().as_str());
        let path = id.map_or_else(|| format!("{kind}[{}]", at + 1), |id| format!("{kind}[{id}]"));
        let tenant = match table.remove_entry("tenant") {
            None => TENANT_DEFAULT.to_owned(),
            Some((key, value)) => tenant_name(value.get_ref()).unwrap_or_else(|wrong| {
                faults.push(found.document.fault_at(
                    &format!("{path}.tenant"),
                    &key.span(),
                    Shown::Line,
                    wrong,
                ));
                TENANT_DEFAULT.to_owned()
            }),
        };
        elements.push(Element {
            document: found.document,
            path,
            table: Spanned::new(item.span(), table),
            tenant,
        });
    }
    elements
}

fn tenant_name(value: &DeValue<'_>) -> Result<String, Wrong> {
    let name = value.as_str().filter(|name| DestinationId::new(name).is_ok());
    let remedy = "use 1 to 64 letters, digits, `.`, `_` or `-`, for example \"acme\"";
    name.map(str::to_owned).ok_or_else(|| Wrong::new("this is no tenant's name", remedy))
}

impl Element<'_> {
    /// Reads and checks; notes a mistake, leaves its setting out, and tries again for the next one.
    fn read<S: DeserializeOwned>(
        &self,
        faults: &mut Vec<Fault>,
        check: impl Fn(&S) -> Result<(), ConfigError>,
    ) -> Option<S> {
        let mut table = self.table.get_ref().clone();
        let mut left_out = BTreeSet::new();
        loop {
            let tried = S::deserialize(Deserializer::from(Spanned::new(self.table.span(), table.clone())));
            let (path, fault) = match tried {
                Ok(spec) => match check(&spec) {
                    Ok(()) => return left_out.is_empty().then_some(spec),
                    Err(error) => self.misunderstood(&error),
                },
                Err(error) => self.unread(&table, &error),
            };
            // What follows from a setting that was left out is no mistake of its own.
            if !left_out.insert(path.clone()) {
                return None;
            }
            faults.push(fault);
            if !leave_out(&mut table, &path) {
                return None;
            }
        }
    }

    /// A mistake that reading found: its setting's path, and what to say.
    fn unread(&self, table: &DeTable<'_>, error: &toml::de::Error) -> (String, Fault) {
        let message = error.message();
        if let Some(field) = quoted_in(message, "missing field `") {
            let wrong = Wrong::new(format!("`{field}` is missing"), example(field));
            return (
                field.to_owned(),
                self.document.fault_at(&self.path, &self.table.span(), Shown::Key, wrong),
            );
        }
        let spot = error.span().and_then(|span| spot_at(table, span.start));
        let Some(spot) = spot else {
            let wrong = Wrong::new(without_values(message), "");
            return (
                String::new(),
                self.document.fault_at(&self.path, &self.table.span(), Shown::Key, wrong),
            );
        };
        let path = format!("{}.{}", self.path, spot.path);
        let (shown, wrong) = match quoted_in(message, "unknown field `") {
            Some(field) => (Shown::Key, unknown_field(field, message)),
            None => (Shown::Line, Wrong::new(without_values(message), "")),
        };
        (without_index(&spot.path), self.document.fault_at(&path, &spot.key, shown, wrong))
    }

    /// A mistake that understanding found.
    fn misunderstood(&self, error: &ConfigError) -> (String, Fault) {
        let span = span_of(self.table.get_ref(), &error.path).unwrap_or(self.table.span());
        let wrong = Wrong::new(error.problem.as_str(), error.remedy.as_str());
        let path = format!("{}.{}", self.path, error.path);
        (without_index(&error.path), self.document.fault_at(&path, &span, Shown::Line, wrong))
    }
}

/// `secrets[0]` → `secrets`: a list is left out whole.
fn without_index(path: &str) -> String {
    path.split('[').next().unwrap_or_default().to_owned()
}

/// Takes the setting at `path` out, or the table around it if it can't be found there.
fn leave_out(table: &mut DeTable<'_>, path: &str) -> bool {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let within = rest.is_some_and(|rest| match table.get_mut(name).map(Spanned::get_mut) {
        Some(DeValue::Table(inner)) => leave_out(inner, rest),
        Some(_) | None => false,
    });
    within || table.remove(name).is_some()
}

fn unknown_field(field: &str, message: &str) -> Wrong {
    if let Some((_, problem)) = NOT_YET.iter().find(|(known, _)| *known == field) {
        return Wrong::new(*problem, "leave it out");
    }
    let known = message.split_once(", expected ").map_or("", |(_, known)| known);
    let mut known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    known.push("tenant");
    Wrong::new("there is no such setting", suggestion(field, &known))
}

fn example(field: &str) -> &'static str {
    match field {
        "id" => "add for example id = \"fan_17\"",
        "name" => "add for example name = \"carts\"",
        "cron" => "add for example cron = \"30 2 * * *\"",
        "url" => "add for example url = \"https://example.com/hooks\"",
        "scheme" => "add for example scheme = \"github\"",
        _ => "add it",
    }
}

fn quoted_in<'m>(message: &'m str, before: &str) -> Option<&'m str> {
    message.strip_prefix(before)?.split('`').next()
}

/// Serde's sentence without the value that it quotes: `invalid type: string "…", expected …`.
fn without_values(message: &str) -> String {
    match message.trim_end().rsplit_once("untagged enum ").map(|(_, name)| name) {
        Some("OneOrMany") => return "text, or a list of texts, is expected".to_owned(),
        Some("ClassifySpec") => {
            return "what follows, for example \"retry\", or a table with follows and effect, is expected"
                .to_owned();
        }
        Some("ToldBy") => return "a status (a number) or a word (text) is expected".to_owned(),
        Some("AnswerSpec") => {
            return "\"json\", \"empty\" or a status from 200 to 299 is expected".to_owned();
        }
        Some(_) | None => {}
    }
    let kinds = ["invalid type: ", "invalid value: "];
    let Some((found, expected)) = kinds
        .iter()
        .find_map(|kind| message.strip_prefix(kind))
        .and_then(|rest| rest.rsplit_once(", expected "))
    else {
        return message.trim_end().to_owned();
    };
    let kind = found.split([' ', '`', '"']).next().unwrap_or("value");
    let expected = match expected {
        "a sequence" => "a list",
        "a map" => "a table",
        "a string" => "text in quotes",
        "u32" | "usize" | "u16" | "f64" => "a number",
        "a boolean" => "true or false",
        other => other,
    };
    format!("{expected} is expected, not {} {kind}", if kind.starts_with(['a', 'i']) { "an" } else { "a" })
}

const LANE: LaneId = LaneId(1);
const TENANT: TenantId = TenantId(1);

fn check_source(spec: &SourceSpec) -> Result<(), ConfigError> {
    let secrets = references::resolve("secrets", &spec.secrets)?;
    let mut opened = spec.clone();
    if let Some(token) = &spec.verify_token {
        opened.verify_token = references::resolve("verify_token", std::slice::from_ref(token))?.pop();
    }
    if let Some(serde_json::Value::String(reference)) = &spec.schema {
        let file = reference.starts_with("file:").then(|| references::follow(reference)).flatten();
        let problem = |problem| ConfigError::new("schema", problem, "write schema = \"file:PATH\"");
        let text = file.unwrap_or_else(|| Err("a schema is a table, or stands in a file".to_owned()));
        opened.schema = Some(posthaste_engine::parse_schema(&text.map_err(problem)?)?);
    }
    compile_source(TENANT, &opened, &secrets).map(drop)
}

/// The URL last: without one there would be no endpoint left in which to find other mistakes.
fn check_endpoint(spec: &EndpointSpec, judge_url: JudgeUrl<'_>) -> Result<(), ConfigError> {
    let secrets = references::resolve("secrets", &spec.secrets)?;
    compile_endpoint(TENANT, LANE, spec, &secrets)?;
    if let Some(url) = look_up_sample(spec)? {
        judge_url(&url).map_err(|problem| ConfigError::new("reconcile.url", problem, ""))?;
    }
    judge_url(&spec.url).map_err(|problem| ConfigError::new("url", problem, ""))
}

fn check_queue(spec: &QueueSpec) -> Result<(), ConfigError> {
    compile_queue(TENANT, LANE, spec).map(drop)
}

fn check_schedule(spec: &ScheduleSpec) -> Result<(), ConfigError> {
    compile_schedule(TENANT, spec).map(drop)
}

/// Ids that two of a tenant's destinations and sources have.
fn taken_twice(declared: &[Declared]) -> Vec<Fault> {
    let mut seen: HashMap<(&str, &str, &str), &Declared> = HashMap::new();
    let mut faults = Vec::new();
    let mut in_order: Vec<&Declared> = declared.iter().collect();
    in_order.sort_by(|one, two| one.place.cmp(&two.place));
    for one in in_order {
        match seen.entry((&one.tenant, one.spec.namespace(), one.spec.id())) {
            std::collections::hash_map::Entry::Vacant(entry) => drop(entry.insert(one)),
            std::collections::hash_map::Entry::Occupied(entry) => {
                let first = entry.get();
                faults.push(Fault {
                    place: one.place.clone(),
                    path: format!("{}[{}]", one.spec.kind(), one.spec.id()),
                    problem: format!("the id is taken by the {} at {}", first.spec.kind(), first.place),
                    remedy: match one.spec.namespace() {
                        "schedule" => "choose another name",
                        _ => {
                            "sources, endpoints and queues of a tenant share one namespace: choose another id"
                        }
                    }
                    .to_owned(),
                    excerpt: None,
                });
            }
        }
    }
    faults
}

/// The lease of the receiver's ledger and the shortest first delay, if that is within it. Row C11.
fn retried_within_lease(spec: &EndpointSpec) -> Option<(DurationMs, DurationMs)> {
    let lease = spec.ledger_lease?.0;
    let endpoint = compile_endpoint(TenantId(1), LaneId(1), spec, &[]).ok()?;
    let shortest = match &endpoint.policy.backoff {
        Backoff::Fixed { delays, .. } => *delays.first()?,
        Backoff::Exponential { base, jitter, .. } => {
            DurationMs(base.0.saturating_mul(u64::from(1_000 - jitter.get())) / 1_000)
        }
    };
    (shortest < lease).then_some((lease, shortest))
}

/// What is allowed and probably not meant. Rows C10, C11.
pub(super) fn warnings(declared: &[Declared]) -> Vec<Fault> {
    let destinations = declared.iter().filter(|one| one.spec.namespace() == "destination");
    let ids: BTreeSet<(&str, &str)> = destinations.map(|one| (one.tenant.as_str(), one.spec.id())).collect();
    let mut warnings = Vec::new();
    for one in declared {
        let mut warn = |setting: &str, problem: String, remedy: &str| {
            warnings.push(Fault {
                place: one.place.clone(),
                path: format!("{}[{}].{setting}", one.spec.kind(), one.spec.id()),
                problem,
                remedy: remedy.to_owned(),
                excerpt: None,
            });
        };
        let dead_letter_queue = match &one.spec {
            Spec::Source(source) => &source.dead_letter_queue,
            Spec::Endpoint(endpoint) => &endpoint.dead_letter_queue,
            Spec::Queue(queue) => &queue.dead_letter_queue,
            Spec::Schedule(_) => &None,
        };
        if let Some(id) = dead_letter_queue.as_deref().filter(|id| !ids.contains(&(one.tenant.as_str(), *id)))
        {
            let problem = format!("{id:?} is not in this configuration");
            warn("dead_letter_queue", problem, "make it over the API before it is needed, or add it here");
        }
        if let Spec::Endpoint(endpoint) = &one.spec
            && let Some((lease, first)) = retried_within_lease(endpoint)
        {
            let problem = format!(
                "the first retry may come after {}, while a claim of the receiver's ledger holds for {}: it would be spent",
                format_duration(first),
                format_duration(lease)
            );
            let remedy = "begin the delays after the lease, or let the receiver answer 409 with Retry-After while a claim \
                          is in force, and leave ledger_lease out";
            warn("ledger_lease", problem, remedy);
        }
        let (on_unknown, idempotent) = match &one.spec {
            Spec::Endpoint(endpoint) => (endpoint.on_unknown, endpoint.idempotent),
            Spec::Queue(queue) => (queue.on_unknown, queue.idempotent),
            Spec::Source(_) | Spec::Schedule(_) => {
                for id in one.spec.to().filter(|id| !ids.contains(&(one.tenant.as_str(), id.as_str()))) {
                    let problem = format!("{id:?} is not in this configuration");
                    warn("to", problem, "make it over the API before messages arrive, or add it here");
                }
                continue;
            }
        };
        if !idempotent && matches!(on_unknown, None | Some(OnUnknownSpec::Retry)) {
            let problem =
                "an attempt that may have had its effect (time-out, reset, 5xx, lost lease) is tried again";
            let remedy = "say idempotent = true if the receiver guards the idempotency key, on_unknown = \"reconcile\" to \
                          ask first, or on_unknown = \"dead_letter\" to leave it to a person";
            warn("on_unknown", problem.to_owned(), remedy);
        }
    }
    warnings
}
