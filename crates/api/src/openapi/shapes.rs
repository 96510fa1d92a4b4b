//! Forms that all generators of clients read. They change the meaning of no schema.

use serde_json::{Value, json};

use super::merge;

/// Objects that can be null: schema, field and the name that the object gets. Generators make up a name for each object
/// without one.
const OBJECTS: [(&str, &str, &str); 16] = [
    ("ArrayRequest", "matrix", "ArrayMatrix"),
    ("BackendDetails", "sbatch_options", "SbatchOptions"),
    ("ClusterSettings", "sbatch_options", "SbatchOptions"),
    ("ComponentRequest", "env", "ComponentVariables"),
    ("ComponentRequest", "node_env", "NodeVariables"),
    ("ComponentRequest", "secret_env", "SecretVariables"),
    ("ContainerJob", "specs", "Specs"),
    ("ContainerJob", "cloud_metadata", "CloudMetadata"),
    ("ContainerJob", "docker_env_vars", "ContainerJobVariables"),
    ("JobRequest", "files", "Files"),
    ("JobRequest", "labels", "Labels"),
    ("JobRequest", "specs", "Specs"),
    ("JobRequest", "cloud_metadata", "CloudMetadata"),
    ("JobRequest", "docker_env_vars", "Variables"),
    ("JobRequest", "secret_env_vars", "SecretVariables"),
    ("JobView", "specs", "Specs"),
];

/// The values of `kind`, so that the data of a streamed event fits one schema only. The kinds of `EventView` stay open,
/// because new ones may be added.
const KINDS: [(&str, &[&str]); 7] = [
    ("EventReset", &["reset"]),
    ("EventEnd", &["end"]),
    ("LogPiece", &["log"]),
    ("LogReset", &["reset"]),
    ("NextAttempt", &["attempt"]),
    ("LogNotice", &["waiting", "stale", "live"]),
    ("LogEnd", &["end"]),
];

pub(super) fn put(document: &mut Value) {
    for (schema, field, name) in OBJECTS {
        name_object(document, schema, field, name);
    }
    let schemas = &mut document["components"]["schemas"];
    for (schema, kinds) in KINDS {
        merge(&mut schemas[schema]["properties"]["kind"], json!({"enum": kinds}));
    }
    plain_references(document);
}

/// Makes the object of a field a schema of its own.
fn name_object(document: &mut Value, schema: &str, field: &str, name: &str) {
    let places = ["", "/allOf/1"]
        .map(|part| format!("/components/schemas/{schema}{part}/properties/{field}"))
        .into_iter()
        .find(|place| document.pointer(place).is_some());
    let Some(field) = places.and_then(|place| document.pointer_mut(&place)) else { return };
    let mut object = field.take();
    let mut nullable = json!({"oneOf": [{"$ref": format!("#/components/schemas/{name}")}, {"type": "null"}]});
    // These describe the field.
    for key in ["description", "writeOnly"] {
        if let Some(value) = object.as_object_mut().and_then(|object| object.shift_remove(key)) {
            nullable[key] = value;
        }
    }
    *field = nullable;
    object["type"] = "object".into();
    document["components"]["schemas"][name] = object;
}

/// Moves a description beside a `$ref` in a list of schemas to the schema that has the list: generators take a `$ref` with a
/// description for another schema.
fn plain_references(part: &mut Value) {
    match part {
        Value::Object(fields) => {
            for list in ["oneOf", "allOf"] {
                let parts = fields.get_mut(list).and_then(Value::as_array_mut);
                let references = parts.into_iter().flatten().filter(|part| part.get("$ref").is_some());
                let texts: Vec<Value> =
                    references.filter_map(|part| part.as_object_mut()?.shift_remove("description")).collect();
                // The descriptions of several variants are those of their own schemas.
                if let [text] = texts.as_slice()
                    && list == "oneOf"
                {
                    fields.entry("description").or_insert(text.clone());
                }
            }
            fields.values_mut().for_each(plain_references);
        }
        Value::Array(parts) => parts.iter_mut().for_each(plain_references),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Fields that may be any JSON, by their places among the schemas.
const ANY_JSON: [&str; 3] = [
    "/ResultView/properties/value",
    "/FileRequest/properties/json",
    "/ArrayMatrix/additionalProperties/items",
];

/// Takes the type from fields that may be any JSON. utoipa's own types would not read them back, so they are objects until then.
pub(super) fn any_json(document: &mut Value) {
    for place in ANY_JSON {
        let field = document["components"]["schemas"].pointer_mut(place).and_then(Value::as_object_mut);
        field.map(|field| field.shift_remove("type"));
    }
}

/// Puts first what readers of the document look for first: the usual scheme of authentication, and the answer to a request that
/// has done something.
pub(super) fn in_reading_order(document: &mut Value) {
    first(&mut document["components"]["securitySchemes"], &["bearer"]);
    for operation in super::operations(document) {
        first(&mut operation["responses"], &["201", "202"]);
    }
}

fn first(object: &mut Value, names: &[&str]) {
    let Some(fields) = object.as_object_mut() else { return };
    let mut sorted: Vec<_> = std::mem::take(fields).into_iter().collect();
    sorted.sort_by_key(|(name, _)| !names.contains(&name.as_str()));
    fields.extend(sorted);
}
