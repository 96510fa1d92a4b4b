//! Paths and queries of requests, from values that may be anything.

use std::fmt::Display;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// RFC 3986 §2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// One segment of a path. A dot segment would be another path.
pub fn segment(value: &str) -> String {
    match value {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        value => utf8_percent_encode(value, RESERVED).to_string(),
    }
}

/// Fills the placeholders of a path, such as `{id}`, in their order.
pub(crate) fn filled(path: &str, values: &[&str]) -> String {
    let mut values = values.iter();
    let mut filled = String::with_capacity(path.len() + 40);
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        let after = after.split_once('}').map_or("", |(_, after)| after);
        filled.push_str(before);
        filled.push_str(&values.next().map_or_else(String::new, |value| segment(value)));
        rest = after;
    }
    filled.push_str(rest);
    filled
}

/// A query: names and values, some of them repeated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the query of a page's address.
    pub fn parse(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Display) -> Self {
        self.0.push((name.to_owned(), value.to_string()));
        self
    }

    /// The same if there is a value.
    #[must_use]
    pub fn with_if(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.0.retain(|(other, _)| other != name);
        self
    }

    /// Without this value of a name.
    #[must_use]
    pub fn without_pair(&self, name: &str, value: &str) -> Self {
        let others = self.0.iter().filter(|(other, its)| other != name || its != value);
        Self(others.cloned().collect())
    }

    /// Only the values of this name.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The first value that is not empty: forms send empty ones.
    pub fn one(&self, name: &str) -> Option<&str> {
        self.all(name).find(|value| !value.is_empty())
    }

    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Only these names, without empty values.
    #[must_use]
    pub fn only(&self, names: &[&str]) -> Self {
        let kept = self.0.iter().filter(|(name, value)| names.contains(&name.as_str()) && !value.is_empty());
        Self(kept.cloned().collect())
    }

    /// The path with the query, if there is one.
    pub fn after(&self, path: &str) -> String {
        if self.0.is_empty() {
            return path.to_owned();
        }
        form_urlencoded::Serializer::for_suffix(format!("{path}?"), path.len() + 1)
            .extend_pairs(&self.0)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_in_its_segment() {
        assert_eq!(
            filled("/jobs/{id}/tasks/{task}", &["a/../b?c#d", "7"]),
            "/jobs/a%2F..%2Fb%3Fc%23d/tasks/7"
        );
        assert_eq!(filled("/clusters/{name}", &[".."]), "/clusters/%2E%2E");
        assert_eq!(filled("/jobs", &[]), "/jobs");
    }

    #[test]
    fn a_query_keeps_repeated_names_and_escapes_their_values() {
        let query = Query::new().with("label", "a:b&c").with("label", "d e").with_if("x", None::<u8>);
        assert_eq!(query.after("/jobs"), "/jobs?label=a%3Ab%26c&label=d+e");
        assert_eq!(Query::parse("label=a%3Ab%26c&label=d+e"), query);
        assert_eq!(Query::new().after("/jobs"), "/jobs");
        assert_eq!(Query::parse("a=&b=1&c=2").only(&["a", "b"]).after("/x"), "/x?b=1");
        assert_eq!(Query::parse("a=&a=1").one("a"), Some("1"));
    }
}
