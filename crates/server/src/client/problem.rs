//! A refusal of the service (RFC 9457), as a person reads it.

use std::fmt;

use serde::Deserialize;

use super::terminal::on_one_line;

/// What the service says; everything it may leave out may be left out.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Problem {
    title: String,
    status: u16,
    detail: Option<String>,
    hint: Option<String>,
    request_id: Option<String>,
    errors: Vec<Fault>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Fault {
    pointer: Option<String>,
    parameter: Option<String>,
    detail: String,
}

impl Problem {
    /// Whether asking again later may help.
    pub(crate) fn is_passing(&self) -> bool {
        self.status == 429 || self.status >= 500
    }

    /// Adds what the caller of this program can do, when the service says nothing.
    pub(crate) fn advised(mut self, has_token: bool) -> Self {
        if self.status == 401 && self.hint.is_none() {
            let advice = if has_token {
                "make a new token with `tao-slurm token create` on the service's machine"
            } else {
                "give a token with --token or TAO_SLURM_TOKEN; make one with `tao-slurm token create` on the \
                 service's machine"
            };
            self.hint = Some(advice.to_owned());
        }
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = if self.title.is_empty() { "the service refused" } else { &self.title };
        f.write_str(&on_one_line(title))?;
        // One fault is often the whole detail; it is said once, in its own line.
        let said = |detail: &&String| self.errors.iter().any(|fault| detail.contains(&fault.detail));
        if let Some(detail) = self.detail.as_ref().filter(|detail| self.errors.len() != 1 || !said(detail)) {
            write!(f, "\n  {}", on_one_line(detail))?;
        }
        for fault in &self.errors {
            let place = fault.pointer.as_ref().or(fault.parameter.as_ref());
            match place.filter(|place| !place.is_empty()) {
                Some(place) => write!(f, "\n  - {}: {}", on_one_line(place), on_one_line(&fault.detail))?,
                None => write!(f, "\n  - {}", on_one_line(&fault.detail))?,
            }
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
    fn every_fault_has_its_line() {
        let json = r#"{"title": "Invalid request", "status": 422, "detail": "Two fields are wrong.",
            "errors": [{"pointer": "/image", "detail": "is missing"}, {"parameter": "limit", "detail": "is too big"}],
            "hint": "see /docs", "request_id": "r1"}"#;
        assert_eq!(
            shown(json),
            "Invalid request\n  Two fields are wrong.\n  - /image: is missing\n  - limit: is too big\n  hint: see /docs"
        );
    }

    #[test]
    fn a_single_fault_is_not_said_twice() {
        let json = r#"{"title": "No", "status": 422, "detail": "/a: is odd.", "errors": [{"pointer": "/a", "detail": "is odd"}]}"#;
        assert_eq!(shown(json), "No\n  - /a: is odd");
    }

    #[test]
    fn who_comes_without_a_token_is_told_where_to_get_one() {
        let text = shown(r#"{"title": "Unauthorized", "status": 401}"#);
        assert!(text.contains("--token or TAO_SLURM_TOKEN"), "{text}");
    }

    #[test]
    fn a_failure_of_the_service_names_the_request() {
        assert!(shown(r#"{"title": "Oops", "status": 500, "request_id": "r1"}"#).ends_with("request: r1"));
    }

    #[test]
    fn a_text_of_the_service_cannot_drive_the_terminal() {
        assert!(!shown(r#"{"title": "a\u001b[2Jb", "status": 400}"#).contains('\u{1b}'));
    }
}
