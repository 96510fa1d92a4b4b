//! The kinds of problem: code, title and HTTP status of each, in one table.

use axum::http::StatusCode;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident => $status:ident, $code:literal, $title:literal;)*) => {
        /// What kind of problem it is. The code is a promise to clients: it never changes its meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            #[cfg(test)]
            const ALL: &'static [Self] = &[$(Self::$kind,)*];

            pub(crate) const fn status(self) -> StatusCode {
                match self {
                    $(Self::$kind => StatusCode::$status,)*
                }
            }

            pub(crate) const fn code(self) -> &'static str {
                match self {
                    $(Self::$kind => $code,)*
                }
            }

            pub(crate) const fn title(self) -> &'static str {
                match self {
                    $(Self::$kind => $title,)*
                }
            }
        }
    };
}

kinds! {
    /// Syntax that is no request at all.
    BadRequest => BAD_REQUEST, "bad_request", "The request cannot be read";
    MalformedJson => BAD_REQUEST, "malformed_json", "The body is not valid JSON";
    InvalidParameter => BAD_REQUEST, "invalid_parameter", "A query parameter is not acceptable";
    InvalidHeader => BAD_REQUEST, "invalid_header", "A header is not acceptable";
    Unauthorized => UNAUTHORIZED, "unauthorized", "A valid token is required";
    /// Of signed tokens: why one is not accepted. Of the service's own tokens that is not said.
    TokenMalformed => UNAUTHORIZED, "token_malformed", "The token is no JWT that can be read";
    TokenAlgorithm => UNAUTHORIZED, "token_algorithm", "The token is not signed in a way that is accepted";
    TokenUnknownKey => UNAUTHORIZED, "token_unknown_key", "The token is signed with an unknown key";
    TokenSignature => UNAUTHORIZED, "token_signature", "The signature of the token is wrong";
    TokenWrongIssuer => UNAUTHORIZED, "token_wrong_issuer", "The token is from another issuer";
    TokenWrongAudience => UNAUTHORIZED, "token_wrong_audience", "The token is for somebody else";
    TokenExpired => UNAUTHORIZED, "token_expired", "The token has expired";
    TokenNotYetValid => UNAUTHORIZED, "token_not_yet_valid", "The token is not valid yet";
    TokenClaims => UNAUTHORIZED, "token_claims", "The token lacks a claim";
    Forbidden => FORBIDDEN, "forbidden", "The token does not allow this";
    NotFound => NOT_FOUND, "not_found", "No such path";
    /// Also a job of somebody else: whether it exists is not the caller's business.
    JobNotFound => NOT_FOUND, "job_not_found", "No such job";
    AttemptNotFound => NOT_FOUND, "attempt_not_found", "The job has no such attempt";
    ClusterNotFound => NOT_FOUND, "cluster_not_found", "No such cluster";
    NoScriptYet => NOT_FOUND, "no_script_yet", "The job has no batch script yet";
    NoWebhook => NOT_FOUND, "no_webhook", "The job has no webhook";
    NoLogYet => NOT_FOUND, "no_log_yet", "The job has no log yet";
    MetricsDisabled => NOT_FOUND, "metrics_disabled", "Metrics are not collected";
    MethodNotAllowed => METHOD_NOT_ALLOWED, "method_not_allowed", "The path does not know this method";
    /// The body, that is: a head that does not arrive ends its connection.
    RequestTimeout => REQUEST_TIMEOUT, "request_timeout", "The body did not arrive in time";
    WrongState => CONFLICT, "wrong_state", "The job's state does not allow this";
    ClusterExists => CONFLICT, "cluster_exists", "There is a cluster of this name";
    ClusterInFile => CONFLICT, "cluster_in_file", "The cluster belongs to the configuration file";
    ClusterInUse => CONFLICT, "cluster_in_use", "Something is under way on the cluster";
    ClusterUnusable => CONFLICT, "cluster_unusable", "The cluster's stored settings are no good";
    ClusterGone => CONFLICT, "cluster_gone", "The job's cluster is not there any more";
    TooManyClusters => CONFLICT, "too_many_clusters", "There are as many clusters as there may be";
    ClusterChanged => PRECONDITION_FAILED, "cluster_changed", "The cluster was changed meanwhile";
    BodyTooLarge => PAYLOAD_TOO_LARGE, "body_too_large", "The body is too large";
    UriTooLong => URI_TOO_LONG, "uri_too_long", "The address is too long";
    UnsupportedMediaType => UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "The body must be JSON";
    InvalidRequest => UNPROCESSABLE_ENTITY, "invalid_request", "The request is not acceptable";
    TooDeep => UNPROCESSABLE_ENTITY, "too_deep", "The body is nested too deeply";
    IdConflict => UNPROCESSABLE_ENTITY, "id_conflict", "The id belongs to another request";
    IfMatchRequired => PRECONDITION_REQUIRED, "if_match_required", "The change has to say what it is meant for";
    TooManyRequests => TOO_MANY_REQUESTS, "too_many_requests", "Too many requests with this token";
    HeadersTooLarge => REQUEST_HEADER_FIELDS_TOO_LARGE, "headers_too_large", "The headers are too large";
    IdempotencyKeyReused => UNPROCESSABLE_ENTITY, "idempotency_key_reused", "The Idempotency-Key belongs to another request";
    Internal => INTERNAL_SERVER_ERROR, "internal", "The service failed";
    LogUnreadable => BAD_GATEWAY, "log_unreadable", "The cluster does not let us read the log";
    DatabaseUnavailable => SERVICE_UNAVAILABLE, "database_unavailable", "The database cannot be reached";
    KeysUnavailable => SERVICE_UNAVAILABLE, "keys_unavailable", "The keys of the token's issuer cannot be read";
    ClusterUnavailable => SERVICE_UNAVAILABLE, "cluster_unavailable", "The cluster does not answer";
    ClusterBusy => SERVICE_UNAVAILABLE, "cluster_busy", "The cluster is being asked this already";
    LogsBusy => SERVICE_UNAVAILABLE, "logs_busy", "Too many logs are being read";
    WatchersBusy => SERVICE_UNAVAILABLE, "watchers_busy", "Too many are watching";
    NotReady => SERVICE_UNAVAILABLE, "not_ready", "The service is not ready";
    Timeout => SERVICE_UNAVAILABLE, "timeout", "The request took too long";
}

impl Kind {
    /// RFC 9457 §3.1.1: identifies the kind; there is nothing to fetch behind it.
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
