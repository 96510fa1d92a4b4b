//! What the OpenAPI document says beside its operations.

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

/// The document before any operation is in it.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "tao-slurm",
        description = "Runs GPU jobs on Slurm clusters. Every error is an RFC 9457 problem with a stable `code`.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    tags(
        (name = "jobs", description = "Send a job, watch it, read its logs, cancel it."),
        (name = "clusters", description = "Look at the clusters, and at what they allow."),
        (name = "tao", description = "What TAO's own services call: the same jobs, in their words."),
        (name = "service", description = "The service's own health and numbers. No token is needed.")
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
            .bearer_format("a token of the service's own, or a JWT")
            .description(Some(
                "A token that `tao-slurm token create` has made, or, where the operator has named an issuer, a JWT of it whose \
                scopes are what its claims say. Each call says which scope it needs: `read` to look, `write` to change, `admin` for what \
                concerns everybody. `admin` includes the others, and sees every job.",
            ))
            .build();
        document
            .components
            .get_or_insert_default()
            .add_security_scheme("bearer", SecurityScheme::Http(scheme));
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Basic)
            .description(Some("The same token as the password of any user, for TAO's own client."))
            .build();
        document
            .components
            .get_or_insert_default()
            .add_security_scheme("basic", SecurityScheme::Http(scheme));
    }
}

/// Says of requests what their values have to be, and of views that each of their fields is always there: one without a value is null, not missing. The
/// macros take `Option` to mean that a field may be missing, which is true of requests only.
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

/// What is sent and comes back in no answer. Of a map the macros say that of each of its values, and of a free document not
/// at all.
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
