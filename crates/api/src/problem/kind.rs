//! The kinds of problem with code, title and HTTP status, in one table.

use axum::http::StatusCode;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident => $status:ident, $code:literal, $title:literal;)*) => {
        /// The kind of a problem. Clients depend on the codes: their meaning never changes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            #[cfg(test)]
            const ALL: &'static [Self] = &[$(Self::$kind,)*];

            const fn row(self) -> (StatusCode, &'static str, &'static str) {
                match self {
                    $(Self::$kind => (StatusCode::$status, $code, $title),)*
                }
            }

            pub(crate) const fn status(self) -> StatusCode {
                self.row().0
            }

            pub(crate) const fn code(self) -> &'static str {
                self.row().1
            }

            pub(crate) const fn title(self) -> &'static str {
                self.row().2
            }
        }
    };
}

kinds! {
    /// The request is malformed.
    BadRequest => BAD_REQUEST, "bad_request", "The request cannot be read";
    MalformedJson => BAD_REQUEST, "malformed_json", "The body is not valid JSON";
    InvalidParameter => BAD_REQUEST, "invalid_parameter", "A query parameter is not acceptable";
    InvalidHeader => BAD_REQUEST, "invalid_header", "A header is not acceptable";
    Unauthorized => UNAUTHORIZED, "unauthorized", "A valid token is required";
    /// Refusals of signed tokens. For the service's own tokens the reason is not revealed.
    TokenMalformed => UNAUTHORIZED, "token_malformed", "The token is not a valid JWT";
    TokenAlgorithm => UNAUTHORIZED, "token_algorithm", "The token's signature algorithm is not accepted";
    TokenUnknownKey => UNAUTHORIZED, "token_unknown_key", "The token is signed with an unknown key";
    TokenSignature => UNAUTHORIZED, "token_signature", "The token's signature is not valid";
    TokenWrongIssuer => UNAUTHORIZED, "token_wrong_issuer", "The token is from another issuer";
    TokenWrongAudience => UNAUTHORIZED, "token_wrong_audience", "The token is for another audience";
    TokenExpired => UNAUTHORIZED, "token_expired", "The token has expired";
    TokenNotYetValid => UNAUTHORIZED, "token_not_yet_valid", "The token is not valid yet";
    TokenClaims => UNAUTHORIZED, "token_claims", "A claim is missing or has the wrong type";
    Forbidden => FORBIDDEN, "forbidden", "The token lacks the required scope";
    NotFound => NOT_FOUND, "not_found", "No such path";
    /// Also for jobs of other owners: their existence is not revealed.
    JobNotFound => NOT_FOUND, "job_not_found", "No such job";
    /// Also for pipelines of other owners.
    PipelineNotFound => NOT_FOUND, "pipeline_not_found", "No such pipeline";
    TaskNotFound => NOT_FOUND, "task_not_found", "The job has no such task";
    AttemptNotFound => NOT_FOUND, "attempt_not_found", "The job has no such attempt";
    ClusterNotFound => NOT_FOUND, "cluster_not_found", "No such cluster";
    NoSuchToken => NOT_FOUND, "token_not_found", "No such token";
    NotFailed => NOT_FOUND, "not_failed", "The job has not failed";
    NoScriptYet => NOT_FOUND, "no_script_yet", "The job has no batch script yet";
    NoWebhook => NOT_FOUND, "no_webhook", "The job has no webhook";
    NoLogYet => NOT_FOUND, "no_log_yet", "The job has no log yet";
    MetricsDisabled => NOT_FOUND, "metrics_disabled", "Metrics are not collected";
    MethodNotAllowed => METHOD_NOT_ALLOWED, "method_not_allowed", "The path does not support this method";
    /// The body arrived too late. The connection is closed if the head does.
    RequestTimeout => REQUEST_TIMEOUT, "request_timeout", "The body did not arrive in time";
    WrongState => CONFLICT, "wrong_state", "The job's state does not allow this";
    ClusterExists => CONFLICT, "cluster_exists", "A cluster with this name exists";
    ClusterInFile => CONFLICT, "cluster_in_file", "The cluster is defined in the configuration file";
    ClusterInUse => CONFLICT, "cluster_in_use", "The cluster is in use";
    ClusterUnusable => CONFLICT, "cluster_unusable", "The cluster's stored settings are invalid";
    ClusterGone => CONFLICT, "cluster_gone", "The job's cluster was removed or replaced";
    TooManyClusters => CONFLICT, "too_many_clusters", "The maximum number of clusters is reached";
    ClusterChanged => PRECONDITION_FAILED, "cluster_changed", "The cluster has changed";
    BodyTooLarge => PAYLOAD_TOO_LARGE, "body_too_large", "The body is too large";
    UriTooLong => URI_TOO_LONG, "uri_too_long", "The address is too long";
    UnsupportedMediaType => UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "The body must be JSON";
    InvalidRequest => UNPROCESSABLE_ENTITY, "invalid_request", "The request is not valid";
    TooDeep => UNPROCESSABLE_ENTITY, "too_deep", "The body is nested too deeply";
    IdConflict => UNPROCESSABLE_ENTITY, "id_conflict", "The id belongs to another request";
    IfMatchRequired => PRECONDITION_REQUIRED, "if_match_required", "If-Match is required";
    TooManyRequests => TOO_MANY_REQUESTS, "too_many_requests", "Too many requests with this token";
    HeadersTooLarge => REQUEST_HEADER_FIELDS_TOO_LARGE, "headers_too_large", "The headers are too large";
    IdempotencyKeyReused => UNPROCESSABLE_ENTITY, "idempotency_key_reused", "The Idempotency-Key belongs to another request";
    Internal => INTERNAL_SERVER_ERROR, "internal", "Internal error";
    LogUnreadable => BAD_GATEWAY, "log_unreadable", "The log is not readable on the cluster";
    DatabaseUnavailable => SERVICE_UNAVAILABLE, "database_unavailable", "The database cannot be reached";
    KeysUnavailable => SERVICE_UNAVAILABLE, "keys_unavailable", "The keys of the token's issuer cannot be read";
    ClusterUnavailable => SERVICE_UNAVAILABLE, "cluster_unavailable", "The cluster does not answer";
    ClusterBusy => SERVICE_UNAVAILABLE, "cluster_busy", "The cluster is already running this request";
    ConnectionsBusy => SERVICE_UNAVAILABLE, "connections_busy", "Too many connections are open";
    BuffersBusy => SERVICE_UNAVAILABLE, "buffers_busy", "Too many large bodies are on their way";
    LogsBusy => SERVICE_UNAVAILABLE, "logs_busy", "Too many logs are being read";
    WatchersBusy => SERVICE_UNAVAILABLE, "watchers_busy", "Too many streams and waits are open";
    NotReady => SERVICE_UNAVAILABLE, "not_ready", "The service is not ready";
    Timeout => SERVICE_UNAVAILABLE, "timeout", "The request took too long";
}

impl Kind {
    /// Identifies the kind (RFC 9457 §3.1.1); the URN cannot be dereferenced.
    pub(crate) fn uri(self) -> String {
        format!("urn:tao-slurm:problem:{}", self.code())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_kinds_share_a_code_and_all_are_errors() {
        let codes: HashSet<_> = Kind::ALL.iter().map(|kind| kind.code()).collect();
        assert_eq!(codes.len(), Kind::ALL.len());
        for kind in Kind::ALL {
            assert!(kind.status().is_client_error() || kind.status().is_server_error(), "{kind:?}");
        }
    }
}
