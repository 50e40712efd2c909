//! `publish`: accepts a message.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::Args;
use serde_json::{Map, Value, json, value::RawValue};
use std::io::Read;

use super::{
    ServerArgs,
    client::Client,
    exit::{Failure, Outcome},
    output::{self, GOOD, ODD, shown, styled},
    times,
};

/// What is sent if no data is given.
const NOTHING: &str = "{}";

#[derive(Debug, Args)]
pub(super) struct PublishArgs {
    /// The business identity of the message: the same key twice is one message
    #[arg(long, value_name = "KEY")]
    key: String,
    /// To this queue
    #[arg(long, value_name = "NAME", conflicts_with = "endpoint")]
    queue: Option<String>,
    /// To this endpoint; may be given several times
    #[arg(long, value_name = "ID")]
    endpoint: Vec<String>,
    /// The event type; without --queue and --endpoint it goes to every endpoint subscribed to it
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// Not before so long
    #[arg(long, value_name = "DURATION", conflicts_with = "due_at")]
    delay: Option<String>,
    /// Not before this time
    #[arg(long, value_name = "TIME")]
    due_at: Option<String>,
    /// The payload: JSON, @FILE, or - for standard input; kept byte for byte
    #[arg(long, value_name = "DATA", default_value = NOTHING, hide_default_value = true)]
    data: String,
    /// The media type, if the payload is no JSON
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// Metadata for the message; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    metadata: Vec<String>,
    #[command(flatten)]
    server: ServerArgs,
}

pub(super) async fn run(args: PublishArgs) -> Result<Outcome, Failure> {
    let client = Client::new(&args.server)?;
    let answer = client.post("/v1/messages", body(&args)?.into()).await?.body;
    if args.server.output.json { output::json(&answer) } else { output::text(&told(&answer)) }
}

/// The request's body. The payload stands in it as it was given, to the byte.
fn body(args: &PublishArgs) -> Result<String, Failure> {
    let mut fields = Map::new();
    fields.insert("key".to_owned(), json!(args.key));
    let mut optional = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(name.to_owned(), value);
        }
    };
    optional("type", args.event_type.as_ref().map(|text| json!(text)));
    optional("delay", args.delay.as_deref().map(times::delay).transpose()?.map(Value::from));
    optional("due_at", args.due_at.as_deref().map(times::instant).transpose()?.map(Value::from));
    optional("to", args.queue.as_ref().map(|queue| json!({ "queue": queue })));
    optional("to", (!args.endpoint.is_empty()).then(|| json!({ "endpoints": args.endpoint })));
    optional("metadata", metadata(&args.metadata)?);
    let data = data(&args.data)?;
    let text = std::str::from_utf8(&data).ok().map(str::trim);
    let raw = text
        .and_then(|text| serde_json::from_str::<&RawValue>(text).ok())
        .filter(|_| args.content_type.is_none());
    if let Some(raw) = raw {
        let fields = Value::Object(fields).to_string();
        let open = fields.strip_suffix('}').expect("an object ends in a brace");
        return Ok(format!("{open},\"payload\":{}}}", raw.get()));
    }
    let content_type = args.content_type.as_deref().ok_or_else(|| {
        Failure::usage("--data is no JSON; say what it is, for example --content-type text/plain")
    })?;
    fields.insert("payload_base64".to_owned(), json!(STANDARD.encode(&data)));
    fields.insert("content_type".to_owned(), json!(content_type));
    Ok(Value::Object(fields).to_string())
}

fn metadata(pairs: &[String]) -> Result<Option<Value>, Failure> {
    let pairs = pairs.iter().map(|pair| {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            Failure::usage(format!("--metadata: {pair:?} is no pair; write for example order=17"))
        })?;
        Ok((name.to_owned(), json!(value)))
    });
    let object: Map<String, Value> = pairs.collect::<Result<_, Failure>>()?;
    Ok((!object.is_empty()).then_some(Value::Object(object)))
}

pub(super) fn data(argument: &str) -> Result<Vec<u8>, Failure> {
    if argument == "-" {
        let mut data = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut data);
        return read
            .map(|_| data)
            .map_err(|error| Failure::refused(format!("standard input can't be read: {error}")));
    }
    match argument.strip_prefix('@') {
        Some(path) => {
            std::fs::read(path).map_err(|error| Failure::refused(format!("{path} can't be read: {error}")))
        }
        None => Ok(argument.as_bytes().to_vec()),
    }
}

/// What became of it, for people.
fn told(answer: &Value) -> String {
    let message = &answer["message"];
    let path = answer["path"].as_str().unwrap_or_default();
    let verb = if path == "first_run" {
        styled(GOOD, "accepted")
    } else {
        format!("{} (this key is known: nothing new was started)", styled(ODD, "duplicate"))
    };
    let mut lines = vec![format!("{verb}  {}  {}", shown(&message["key"]), shown(&message["id"]))];
    let jobs = answer["jobs"].as_array().map(Vec::as_slice).unwrap_or_default();
    for job in jobs {
        let due = match job["due_at"].as_str() {
            Some(due) => {
                format!("  due {} ({})", times::short(due), times::from_now(due).unwrap_or_default())
            }
            None => String::new(),
        };
        lines.push(format!(
            "  {:<13} {}  {}{due}",
            shown(&job["state"]),
            shown(&job["destination"]),
            shown(&job["id"])
        ));
    }
    let total = answer["jobs_total"].as_u64().unwrap_or_default();
    let listed = u64::try_from(jobs.len()).unwrap_or(u64::MAX);
    if total > listed {
        lines.push(format!("  and {} more jobs", total - listed));
    }
    if total == 0 {
        lines.push(format!(
            "  {}: no endpoint is subscribed to this type, and neither --queue nor --endpoint was given",
            styled(ODD, "no destination")
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        publish: PublishArgs,
    }

    fn body_of(arguments: &[&str]) -> Result<String, Failure> {
        let all = ["publish", "--key", "k:1"].iter().chain(arguments);
        body(&Only::try_parse_from(all).unwrap().publish)
    }

    #[test]
    fn r_a10_a_payload_is_sent_to_the_byte() {
        let body =
            body_of(&["--queue", "carts", "--delay", "24h", "--data", " {\"b\": 1.50, \"a\":[ ]} "]).unwrap();
        let expected = r#"{"delay":"24h","key":"k:1","to":{"queue":"carts"},"payload":{"b": 1.50, "a":[ ]}}"#;
        assert_eq!(expected, body);
        assert_eq!(r#"{"key":"k:1","payload":{}}"#, body_of(&[]).unwrap());
    }

    #[test]
    fn what_is_no_json_needs_a_type_and_travels_as_base64() {
        assert!(matches!(body_of(&["--data", "hello"]), Err(Failure::Usage(_))));
        let body = body_of(&["--data", "hello", "--content-type", "text/plain"]).unwrap();
        assert_eq!(r#"{"content_type":"text/plain","key":"k:1","payload_base64":"aGVsbG8="}"#, body);
    }

    #[test]
    fn metadata_are_pairs() {
        let body = body_of(&["--metadata", "order=17", "--metadata", "a=b=c"]).unwrap();
        assert!(body.contains(r#""metadata":{"a":"b=c","order":"17"}"#), "{body}");
        assert!(matches!(body_of(&["--metadata", "order"]), Err(Failure::Usage(_))));
    }
}
