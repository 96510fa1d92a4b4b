//! The parts of the OpenAPI document beside its operations.

use utoipa::{
    Modify, OpenApi,
    openapi::{
        RefOr, Schema,
        path::{Operation, PathItem},
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use crate::problem::{Document, FieldError};

mod bounds;
mod examples;
mod headers;
pub(crate) mod serve;

/// The document before operations are added.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "tao-slurm",
        description = "Runs GPU jobs on Slurm clusters. Every error is an RFC 9457 problem with a stable `code`.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    tags(
        (name = "jobs", description = "Submit jobs, watch them, read their logs, cancel them."),
        (name = "clusters", description = "Read, change and test clusters."),
        (name = "tao", description = "TAO's own API for the same jobs, for TAO's services."),
        (name = "service", description = "The service's health and metrics. These calls need no token.")
    ),
    components(schemas(Document, FieldError)),
    modifiers(&Bearer)
)]
pub(crate) struct Metadata;

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("one of the service's tokens, or a JWT")
            .description(Some(
                "A token from `tao-slurm token create`, or a JWT of the issuer that the operator has configured. Each call names the scope \
                that it needs: `read` to read, `write` to change jobs, `admin` for clusters and other shared settings. `admin` includes the \
                other scopes and sees all jobs.",
            ))
            .build();
        document
            .components
            .get_or_insert_default()
            .add_security_scheme("bearer", SecurityScheme::Http(scheme));
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Basic)
            .description(Some("The same token as the password of any user name, for TAO's client."))
            .build();
        document
            .components
            .get_or_insert_default()
            .add_security_scheme("basic", SecurityScheme::Http(scheme));
    }
}

/// Completes the document: limits of requests, examples, common headers, and required fields of views. Each field of a view is
/// always present, and null without a value; the macros take `Option` to mean that a field can be absent.
pub(crate) fn complete(document: &mut utoipa::openapi::OpenApi) {
    bounds::without_null(document);
    bounds::put(document);
    seal(document);
    examples::put(document);
    headers::put(document);
    let Some(components) = &mut document.components else { return };
    for (name, schema) in &mut components.schemas {
        if name.ends_with("View")
            || matches!(name.as_str(), "JobSummary" | "JobList" | "ClusterList" | "PartitionList")
        {
            require_all(schema);
        }
    }
}

/// Fields that no answer contains. For maps and free objects the macros put `writeOnly` in the wrong place or ignore it.
const SEALED: [(&str, &str); 5] = [
    ("JobRequest", "secret_env_vars"),
    ("JobRequest", "cloud_metadata"),
    ("RetryRequest", "secret_env_vars"),
    ("RetryRequest", "cloud_metadata"),
    ("ContainerJob", "cloud_metadata"),
];

fn seal(document: &mut utoipa::openapi::OpenApi) {
    for (schema, field) in SEALED {
        if let Some(Schema::Object(object)) = bounds::field_of(document, schema, field) {
            object.write_only = Some(true);
        }
    }
}

fn operations_of(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let methods = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete];
    methods.into_iter().filter_map(Option::as_mut)
}

fn require_all(schema: &mut RefOr<Schema>) {
    match schema {
        RefOr::T(Schema::Object(object)) => object.required = object.properties.keys().cloned().collect(),
        RefOr::T(Schema::AllOf(parts)) => parts.items.iter_mut().for_each(require_all),
        RefOr::T(_) | RefOr::Ref(_) => {}
    }
}
