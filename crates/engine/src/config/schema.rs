//! What a source's bodies must look like: JSON Schema whose work is bounded, and which asks nobody for anything. Row A2.

use std::{collections::HashMap, fmt};

use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value};

use super::ConfigError;

/// Bytes of a schema, written without spaces.
const BYTES_MAX: usize = 64 * 1024;

/// Subschemas that are applied within one another to one value of a body, references included.
const DEPTH_MAX: usize = 16;

/// Subschemas that are applied to one value of a body: the work that it may cost.
const STEPS_MAX: u64 = 1_000;

/// Bytes of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 256 * 1024;

/// Characters of what is said about a body that doesn't fit.
const PROBLEM_CHARS_MAX: usize = 300;

const REFERENCE_REMEDY: &str =
    "refer to a place in this schema, for example \"#/$defs/order\"; copy what stands elsewhere into it";

/// Keywords whose schema, or each of whose schemas, is applied to the same value.
const SAME_VALUE: &[&str] =
    &["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];

/// Keywords whose schema, or each of whose schemas, is applied to parts of the value.
const PARTS: &[&str] = &[
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "contentSchema",
    "$defs",
    "definitions",
];

/// Keywords whose value names schemas by name.
const BY_NAME: &[&str] =
    &["dependentSchemas", "dependencies", "properties", "patternProperties", "$defs", "definitions"];

/// A schema that is understood.
pub struct Schema(Validator);

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schema")
    }
}

impl Schema {
    /// Understands a schema.
    ///
    /// Errors: it is none, refers to anything outside of itself, or may cost more than is allowed.
    pub fn compile(schema: &Value) -> Result<Self, ConfigError> {
        if !schema.is_object() && !schema.is_boolean() {
            return Err(refused("a schema is an object", "give the schema, or in a file \"file:PATH\""));
        }
        let bytes = schema.to_string().len();
        if bytes > BYTES_MAX {
            let problem = format!("the schema has {bytes} bytes; at most {BYTES_MAX} are taken");
            return Err(refused(problem, "leave out descriptions, or check less"));
        }
        Walk { root: schema, steps: HashMap::new() }.check()?;
        let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES_MAX);
        jsonschema::options()
            .with_pattern_options(patterns)
            .should_validate_formats(false)
            .build(schema)
            .map(Self)
            .map_err(|error| {
                let problem = format!("at {:?}: {error}", error.instance_path().to_string());
                refused(problem, "see https://json-schema.org for what a schema may say")
            })
    }

    /// Whether `body` fits; otherwise where it first doesn't, and by which rule. Holds no value of the body.
    pub fn check(&self, body: &Value) -> Result<(), String> {
        self.0.validate(body).map_err(|error| {
            let (place, rule) = (error.instance_path().to_string(), error.schema_path().to_string());
            let place = if place.is_empty() { "the body".to_owned() } else { place };
            let text = format!("{place} does not fit the schema's rule {rule}");
            text.chars().take(PROBLEM_CHARS_MAX).collect()
        })
    }
}

fn refused(problem: impl Into<String>, remedy: &str) -> ConfigError {
    ConfigError::new("schema", problem, remedy)
}

/// Goes through the schemas of a schema, each once, and counts what each may cost for one value.
struct Walk<'s> {
    root: &'s Value,
    /// By place: how many schemas it applies to one value, itself included. `None` while it is being counted.
    steps: HashMap<*const Value, Option<u64>>,
}

impl<'s> Walk<'s> {
    fn check(mut self) -> Result<(), ConfigError> {
        // Those of parts begin anew with the value: they are counted one by one, not within one another.
        let mut waiting = vec![(self.root, "#".to_owned())];
        let mut seen = std::collections::HashSet::new();
        while let Some((schema, place)) = waiting.pop() {
            if !seen.insert(std::ptr::from_ref(schema)) {
                continue;
            }
            self.steps_of(schema, &place, 0)?;
            let Value::Object(object) = schema else { continue };
            for (keyword, inner) in parts_of(object, PARTS).chain(parts_of(object, SAME_VALUE)) {
                waiting.push((inner, format!("{place}/{keyword}")));
            }
            if let Some(target) = self.reference(object, &place)? {
                waiting.push((target, place));
            }
        }
        Ok(())
    }

    fn steps_of(&mut self, schema: &'s Value, place: &str, depth: usize) -> Result<u64, ConfigError> {
        let Value::Object(object) = schema else { return Ok(1) };
        if depth >= DEPTH_MAX {
            let problem = format!("at {place}: more than {DEPTH_MAX} schemas are applied within one another");
            return Err(refused(problem, "make it flatter"));
        }
        match self.steps.get(&std::ptr::from_ref(schema)) {
            // Counted before, at another depth: what is below it is counted anew where that may be too deep.
            Some(Some(1)) => return Ok(1),
            Some(None) => {
                let problem =
                    format!("at {place}: the schema refers to itself without going deeper into the body");
                return Err(refused(problem, "take one of the references out"));
            }
            Some(Some(_)) | None => {}
        }
        self.steps.insert(std::ptr::from_ref(schema), None);
        let mut steps = 1_u64;
        if let Some(target) = self.reference(object, place)? {
            steps = steps.saturating_add(self.steps_of(target, place, depth + 1)?);
        }
        for (keyword, inner) in parts_of(object, SAME_VALUE) {
            steps = steps.saturating_add(self.steps_of(inner, &format!("{place}/{keyword}"), depth + 1)?);
            if steps > STEPS_MAX {
                let problem = format!("at {place}: more than {STEPS_MAX} schemas are applied to one value");
                return Err(refused(problem, "check less, or in fewer ways"));
            }
        }
        self.steps.insert(std::ptr::from_ref(schema), Some(steps));
        Ok(steps)
    }

    /// What a schema refers to, which must stand in this one.
    fn reference(&self, object: &Map<String, Value>, place: &str) -> Result<Option<&'s Value>, ConfigError> {
        for keyword in ["$dynamicRef", "$recursiveRef"] {
            if object.contains_key(keyword) {
                return Err(refused(format!("at {place}: {keyword} is not taken"), "use $ref"));
            }
        }
        if place != "#" && object.get("$id").or(object.get("id")).is_some_and(Value::is_string) {
            let problem = format!("at {place}: an id within the schema would change what references mean");
            return Err(refused(problem, "leave it out"));
        }
        let Some(reference) = object.get("$ref") else { return Ok(None) };
        let Some(reference) = reference.as_str() else {
            return Err(refused(format!("at {place}: $ref is no text"), REFERENCE_REMEDY));
        };
        let inside = reference.strip_prefix('#').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let Some(pointer) = inside else {
            let shown: String = reference.chars().take(80).collect();
            let problem = format!("at {place}: $ref {shown:?} is not in this schema, and nothing is fetched");
            return Err(refused(problem, REFERENCE_REMEDY));
        };
        match self.root.pointer(pointer) {
            Some(target) => Ok(Some(target)),
            None => Err(refused(format!("at {place}: $ref {reference:?} leads nowhere"), REFERENCE_REMEDY)),
        }
    }
}

/// The schemas under `keywords`, whether one, a list, or by name.
fn parts_of<'s>(
    object: &'s Map<String, Value>,
    keywords: &'static [&'static str],
) -> impl Iterator<Item = (&'static str, &'s Value)> {
    keywords.iter().flat_map(move |keyword| {
        let inner: Vec<&Value> = match object.get(*keyword) {
            Some(Value::Array(list)) => list.iter().collect(),
            Some(Value::Object(named)) if BY_NAME.contains(keyword) => named.values().collect(),
            Some(one) => vec![one],
            None => Vec::new(),
        };
        inner.into_iter().map(|inner| (*keyword, inner))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(schema: &Value) -> String {
        Schema::compile(schema).unwrap_err().to_string()
    }

    #[test]
    fn r_a2_a_body_fits_or_is_told_where_it_does_not() {
        let schema = Schema::compile(&json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "required": ["id"],
            "properties": {"id": {"type": "string"}, "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}},
            "$defs": {"line": {"type": "object", "required": ["sku"]}},
        }))
        .unwrap();
        assert_eq!(Ok(()), schema.check(&json!({"id": "1", "lines": [{"sku": "a"}]})));
        let problem =
            schema.check(&json!({"id": "1", "lines": [{"sku": "a"}, {"secret": "xyzzy"}]})).unwrap_err();
        assert!(problem.starts_with("/lines/1 does not fit"), "{problem}");
        assert!(!problem.contains("xyzzy"), "no value of the body: {problem}");
        assert!(schema.check(&json!([])).is_err());
    }

    #[test]
    fn r_a2_a_schema_is_not_fetched_from_anywhere() {
        for reference in
            ["https://example.com/a.json", "file:///etc/passwd", "other.json#/a", "//host/x", "#name"]
        {
            let problem = refusal(&json!({"properties": {"a": {"$ref": reference}}}));
            assert!(problem.contains("is not in this schema"), "{reference}: {problem}");
        }
        assert!(refusal(&json!({"$ref": "#/$defs/a"})).contains("leads nowhere"));
        assert!(refusal(&json!({"$dynamicRef": "#a"})).contains("$dynamicRef"));
        assert!(refusal(&json!({"allOf": [{"$id": "https://example.com/x"}]})).contains("an id within"));
        assert!(Schema::compile(&json!({"$schema": "https://example.com/mine"})).is_err());
        // Data is no schema.
        Schema::compile(&json!({"const": {"$ref": "https://example.com"}})).unwrap();
        Schema::compile(&json!({"properties": {"$ref": {"type": "string"}}})).unwrap();
    }

    #[test]
    fn r_a2_a_schema_can_t_cost_more_than_its_bound() {
        assert!(refusal(&json!({"$ref": "#"})).contains("refers to itself"));
        let ring = json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}});
        assert!(refusal(&ring).contains("refers to itself"));
        // Each level applies the next one twice: 2 to the power of its height.
        let mut bomb = json!({"$defs": {"l0": {"type": "object"}}, "$ref": "#/$defs/l9"});
        for level in 1..=9 {
            let below = json!({"$ref": format!("#/$defs/l{}", level - 1)});
            bomb["$defs"][format!("l{level}")] = json!({"anyOf": [below, below, below]});
        }
        let problem = refusal(&bomb);
        assert!(problem.contains("schemas are applied"), "{problem}");
        assert!(refusal(&json!({"description": "x".repeat(BYTES_MAX)})).contains("bytes"));
        assert!(Schema::compile(&json!({"pattern": "(?:a{1000}){1000}"})).is_err());
        // Going deeper into the body is no ring.
        let tree = json!({"type": "object", "properties": {"child": {"$ref": "#"}}});
        let tree = Schema::compile(&tree).unwrap();
        assert!(tree.check(&json!({"child": {"child": 7}})).is_err());
    }

    #[test]
    fn the_deepest_schema_stands_the_deepest_body() {
        let mut schema = json!({"additionalProperties": {"$ref": "#"}, "items": {"$ref": "#"}});
        for _ in 0..DEPTH_MAX - 3 {
            schema = json!({"allOf": [schema]});
        }
        let schema = Schema::compile(&schema).unwrap();
        let body: Value = serde_json::from_str(&format!("{}{}", "[".repeat(127), "]".repeat(127))).unwrap();
        assert_eq!(Ok(()), schema.check(&body));
    }
}
