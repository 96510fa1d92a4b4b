//! The limits of request fields, added to the OpenAPI document, so that generated clients refuse what the service would refuse.
//! `fuzz/api` compares them with the types that parse requests.
//!
//! utoipa's attributes cannot describe list items or map keys, so all limits are in this table.

use utoipa::{
    Number,
    openapi::{
        OpenApi, RefOr, Schema,
        path::Parameter,
        schema::{AdditionalProperties, Array, ArrayItems, Object, SchemaType, Type},
    },
};

mod patterns;
#[cfg(test)]
mod tests;

use patterns::{
    CLUSTER, DURATION, EMAIL, ENV_KEY, HTTP, INPUT, KEY_NAME, LABEL, LOGIN, MACHINE, MOUNT, NOT_BLANK,
    PARTITION, PARTITIONS, PASSWORD, PATH, PLAIN, SBATCH_EXPORT, USER, WEBHOOK_SECRET, WORD,
};

/// The limit of one field.
#[derive(Debug, Clone, Copy)]
enum Bound {
    /// A text with this pattern and maximum length.
    Text(&'static str, usize),
    /// A whole number in this range.
    Whole(usize, usize),
    /// A number of hours.
    Hours,
    /// A list of at least one distinct text with this pattern and maximum length.
    Different(&'static str, usize),
    /// A list of texts with this pattern and maximum length.
    Texts(&'static str, usize),
    /// A map: the pattern and maximum length of its keys, the maximum length of its values, the maximum number of entries.
    Map(&'static str, usize, usize, usize),
}

use Bound::{Different, Hours, Map, Text, Texts, Whole};

const LONGEST_PATH: usize = 3000;

const BOUNDS: &[(&str, &str, Bound)] = &[
    ("JobRequest", "name", Text(PLAIN, 500)),
    ("JobRequest", "labels", Map(PLAIN, 500, 500, 64)),
    ("JobRequest", "image", Text(NOT_BLANK, 4096)),
    ("JobRequest", "network_arch", Text(WORD, 100)),
    ("JobRequest", "action", Text(WORD, 100)),
    ("JobRequest", "docker_env_vars", Map(ENV_KEY, 128, 32_768, 1000)),
    ("JobRequest", "secret_env_vars", Map(ENV_KEY, 128, 32_768, 1000)),
    ("JobRequest", "inputs", Texts(INPUT, LONGEST_PATH)),
    ("JobRequest", "command", Text(NOT_BLANK, 262_144)),
    ("JobRequest", "num_gpu", Whole(0, 8192)),
    ("ResourcesRequest", "num_nodes", Whole(1, 1024)),
    ("ResourcesRequest", "num_gpus", Whole(0, 8192)),
    ("ResourcesRequest", "gpus_per_node", Whole(0, 64)),
    ("ResourcesRequest", "max_num_gpus_per_node", Whole(1, 64)),
    ("ResourcesRequest", "cpus_per_task", Whole(1, 4096)),
    ("ResourcesRequest", "time_hours", Hours),
    ("ResourcesRequest", "timeout_hours", Hours),
    ("ContainerRequest", "mounts", Texts(MOUNT, LONGEST_PATH)),
    ("BackendDetails", "partition", Text(PARTITIONS, 1024)),
    ("BackendDetails", "cluster_name", Text(CLUSTER, 64)),
    ("WebhookRequest", "url", Text(HTTP, 2000)),
    ("WebhookRequest", "secret", Text(WEBHOOK_SECRET, 94)),
    ("RetryRequest", "secret_env_vars", Map(ENV_KEY, 128, 32_768, 1000)),
    ("ContainerJob", "neural_network_name", Text(WORD, 100)),
    ("ContainerJob", "action_name", Text(WORD, 100)),
    ("ContainerJob", "docker_env_vars", Map(ENV_KEY, 128, 32_768, 1000)),
    ("ContainerJob", "statefulset_replicas", Whole(0, 1024)),
    ("EnrootCredentials", "machine", Text(MACHINE, 253)),
    ("EnrootCredentials", "login", Text(LOGIN, 4096)),
    ("EnrootCredentials", "password", Text(PASSWORD, 4096)),
    ("ClusterSettings", "name", Text(CLUSTER, 64)),
    ("ClusterSettings", "user", Text(USER, 32)),
    ("ClusterSettings", "hosts", Texts(NOT_BLANK, 300)),
    ("ClusterSettings", "ssh_key", Text(KEY_NAME, 100)),
    ("ClusterSettings", "host_keys", Texts(NOT_BLANK, 16_384)),
    ("ClusterSettings", "account", Text(PARTITION, 64)),
    ("ClusterSettings", "partitions", Different(PARTITION, 64)),
    ("ClusterSettings", "base_results_dir", Text(PATH, LONGEST_PATH)),
    ("ClusterSettings", "container_mounts", Texts(MOUNT, LONGEST_PATH)),
    ("ClusterSettings", "num_nodes", Whole(1, 1024)),
    ("ClusterSettings", "num_gpus", Whole(0, 8192)),
    ("ClusterSettings", "max_num_gpus_per_node", Whole(1, 64)),
    ("ClusterSettings", "cpus_per_task", Whole(1, 4096)),
    ("ClusterSettings", "time_hours", Hours),
    ("ClusterSettings", "timeout_hours", Hours),
    ("ClusterSettings", "max_time_hours", Hours),
    ("ClusterSettings", "sqsh_cache_dir", Text(PATH, LONGEST_PATH)),
    ("ClusterSettings", "conversion_partition", Text(PARTITION, 64)),
    ("ClusterSettings", "conversion_minutes", Whole(1, 1440)),
    ("ClusterSettings", "conversion_memory_gb", Whole(1, 4096)),
    ("ClusterSettings", "enroot_temp_dir", Text(PATH, LONGEST_PATH)),
    ("ClusterSettings", "max_retries", Whole(0, 100)),
    ("ClusterSettings", "max_requeues", Whole(0, 1000)),
    ("ClusterSettings", "node_exclusion_hours", Whole(0, 8760)),
    ("ClusterSettings", "mail_user", Text(EMAIL, 254)),
    ("ClusterSettings", "warning_seconds", Whole(0, 65_535)),
    ("ClusterSettings", "sbatch_export", Text(SBATCH_EXPORT, 3)),
    ("ClusterSettings", "sessions", Whole(1, 4)),
    ("ClusterSettings", "connect_timeout", Text(DURATION, 100)),
    ("ClusterSettings", "poll_min", Text(DURATION, 100)),
    ("ClusterSettings", "poll_max", Text(DURATION, 100)),
];

/// The limits of repeatable parameters, by name.
const PARAMETERS: &[(&str, Bound)] =
    &[("cluster", Texts(CLUSTER, 64)), ("label", Texts(LABEL, LONGEST_LABEL))];

/// A key, a colon and a value.
const LONGEST_LABEL: usize = 1001;

/// Puts all of them into the document. One that finds no field is left out; a test looks for such.
pub(super) fn put(document: &mut OpenApi) {
    for (schema, field, bound) in BOUNDS {
        if let Some(field) = field_of(document, schema, field) {
            bound.put(field);
        }
    }
    for parameter in parameters(document) {
        let bound = PARAMETERS.iter().find(|(name, _)| *name == parameter.name);
        if let (Some((_, bound)), Some(RefOr::T(schema))) = (bound, &mut parameter.schema) {
            bound.put(schema);
        }
    }
}

/// Says of each parameter that it is never null: who means none leaves it out. The macros take `Option` to mean both.
pub(super) fn without_null(document: &mut OpenApi) {
    let is_null = |schema: &RefOr<Schema>| matches!(schema, RefOr::T(Schema::Object(one)) if one.schema_type == SchemaType::new(Type::Null));
    for parameter in parameters(document) {
        let Some(schema) = &mut parameter.schema else { continue };
        match schema {
            RefOr::T(
                Schema::Object(Object { schema_type, .. }) | Schema::Array(Array { schema_type, .. }),
            ) => {
                if let SchemaType::Array(types) = schema_type {
                    types.retain(|one| *one != Type::Null);
                    if let [one] = types.as_slice() {
                        *schema_type = SchemaType::new(one.clone());
                    }
                }
            }
            RefOr::T(Schema::OneOf(one_of)) => {
                one_of.items.retain(|one| !is_null(one));
                if let [one] = one_of.items.as_slice() {
                    *schema = one.clone();
                }
            }
            RefOr::T(_) | RefOr::Ref(_) => {}
        }
    }
}

fn parameters(document: &mut OpenApi) -> impl Iterator<Item = &mut Parameter> {
    let operations = document.paths.paths.values_mut().flat_map(|item| {
        [&mut item.get, &mut item.put, &mut item.post, &mut item.delete].into_iter().flatten()
    });
    operations.flat_map(|operation| operation.parameters.iter_mut().flatten()).filter_map(|parameter| {
        match parameter {
            RefOr::T(parameter) => Some(parameter),
            RefOr::Ref(_) => None,
        }
    })
}

pub(super) fn field_of<'d>(document: &'d mut OpenApi, schema: &str, field: &str) -> Option<&'d mut Schema> {
    let schemas = &mut document.components.as_mut()?.schemas;
    let RefOr::T(Schema::Object(object)) = schemas.get_mut(schema)? else { return None };
    match object.properties.get_mut(field)? {
        RefOr::T(schema) => Some(schema),
        RefOr::Ref(_) => None,
    }
}

impl Bound {
    fn put(self, field: &mut Schema) {
        match (self, field) {
            (Text(pattern, longest), Schema::Object(text)) => form(text, pattern, longest),
            (Whole(least, most), Schema::Object(number)) => {
                number.minimum = Some(Number::UInt(least));
                number.maximum = Some(Number::UInt(most));
            }
            (Hours, Schema::Object(number)) => {
                number.minimum = Some(Number::Float(0.0001));
                number.maximum = Some(Number::UInt(1_000_000));
            }
            (Different(pattern, longest) | Texts(pattern, longest), Schema::Array(list)) => {
                if let Different(..) = self {
                    list.unique_items = true;
                    list.min_items = Some(1);
                }
                if let ArrayItems::RefOrSchema(items) = &mut list.items
                    && let RefOr::T(Schema::Object(text)) = &mut **items
                {
                    form(text, pattern, longest);
                }
            }
            (Map(pattern, longest_name, longest, most), Schema::Object(map)) => {
                map.max_properties = Some(most);
                let mut name = Object::builder().schema_type(SchemaType::new(Type::String)).build();
                form(&mut name, pattern, longest_name);
                map.property_names = Some(Box::new(Schema::Object(name)));
                if let Some(AdditionalProperties::RefOr(RefOr::T(Schema::Object(value)))) =
                    map.additional_properties.as_deref_mut()
                {
                    value.max_length = Some(longest);
                }
            }
            // A test finds what does not fit.
            (Text(..) | Whole(..) | Hours | Different(..) | Texts(..) | Map(..), _) => {}
        }
    }
}

fn form(text: &mut Object, pattern: &'static str, longest: usize) {
    text.pattern = Some(pattern.to_owned());
    text.min_length = Some(1);
    text.max_length = Some(longest);
}
