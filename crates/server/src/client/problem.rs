//! An error response of the service (RFC 9457), formatted for a terminal.

use std::fmt;

use serde::Deserialize;

use super::text::on_one_line;

/// The problem document; every member is optional.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Problem {
    title: String,
    status: u16,
    detail: Option<String>,
    hint: Option<String>,
    request_id: Option<String>,
    errors: Vec<FieldError>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct FieldError {
    pointer: Option<String>,
    parameter: Option<String>,
    detail: String,
}

impl Problem {
    /// Whether the same request may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        self.status == 429 || self.status >= 500
    }

    /// Whether what the request names is not there.
    pub(crate) const fn is_not_found(&self) -> bool {
        self.status == 404
    }

    /// Adds a hint for the user of this program if the service sent none.
    pub(crate) fn advised(mut self, has_token: bool) -> Self {
        if self.status == 401 && self.hint.is_none() {
            let advice = if has_token {
                "log in again with `tao-slurm login`; create a token with `tao-slurm token create` on the service's machine"
            } else {
                "log in with `tao-slurm login`, or pass a token with --token or TAO_SLURM_TOKEN; create one with \
                 `tao-slurm token create` on the service's machine"
            };
            self.hint = Some(advice.to_owned());
        }
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = if self.title.is_empty() { "the service rejected the request" } else { &self.title };
        f.write_str(&on_one_line(title))?;
        // A single error often repeats the detail, so only one of them is shown.
        let repeats =
            |detail: &&String| matches!(self.errors.as_slice(), [one] if detail.contains(&one.detail));
        if let Some(detail) = self.detail.as_ref().filter(|detail| !repeats(detail)) {
            write!(f, "\n  {}", on_one_line(detail))?;
        }
        for error in &self.errors {
            let place = error.pointer.as_ref().or(error.parameter.as_ref());
            let place = place.filter(|place| !place.is_empty()).map(|place| format!("{place}: "));
            write!(f, "\n  - {}", on_one_line(&(place.unwrap_or_default() + &error.detail)))?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {}", on_one_line(hint))?;
        }
        match &self.request_id {
            Some(id) if self.status >= 500 => write!(f, "\n  request: {}", on_one_line(id)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(json: &str) -> String {
        serde_json::from_str::<Problem>(json).unwrap().advised(false).to_string()
    }

    #[test]
    fn each_error_has_its_own_line() {
        let json = r#"{"title": "Invalid request", "status": 422, "detail": "Two fields are wrong.",
            "errors": [{"pointer": "/image", "detail": "is missing"}, {"parameter": "limit", "detail": "is too big"}],
            "hint": "see /docs", "request_id": "r1"}"#;
        assert_eq!(
            shown(json),
            "Invalid request\n  Two fields are wrong.\n  - /image: is missing\n  - limit: is too big\n  hint: see /docs"
        );
    }

    #[test]
    fn a_single_error_is_shown_once() {
        let json = r#"{"title": "No", "status": 422, "detail": "/a: is odd.", "errors": [{"pointer": "/a", "detail": "is odd"}]}"#;
        assert_eq!(shown(json), "No\n  - /a: is odd");
    }

    #[test]
    fn a_request_without_a_token_is_an_error_that_says_how_to_get_one() {
        let text = shown(r#"{"title": "Unauthorized", "status": 401}"#);
        assert!(text.contains("--token or TAO_SLURM_TOKEN"), "{text}");
    }

    #[test]
    fn a_server_error_names_the_request() {
        assert!(shown(r#"{"title": "Oops", "status": 500, "request_id": "r1"}"#).ends_with("request: r1"));
    }

    #[test]
    fn text_from_the_service_cannot_control_the_terminal() {
        assert!(!shown(r#"{"title": "a\u001b[2Jb", "status": 400}"#).contains('\u{1b}'));
    }
}
