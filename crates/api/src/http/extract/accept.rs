//! Content negotiation between JSON and event streams.

use axum::http::{HeaderMap, header};

const EVENTS: &str = "text/event-stream";

/// Whether to answer with a stream of events (RFC 9110 §12.5.1): only if the client names that type and does not prefer
/// JSON.
pub(crate) fn wants_stream(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    let ranges: Vec<(&str, f32)> = values.flat_map(|value| value.split(',')).map(range).collect();
    let Some(place) = ranges.iter().position(|(name, _)| name.eq_ignore_ascii_case(EVENTS)) else {
        return false;
    };
    let quality = ranges[place].1;
    let is_preferred =
        |other: usize, (_, theirs): (&str, f32)| theirs > quality || (other < place && theirs >= quality);
    let is_json = |name: &str| name.eq_ignore_ascii_case("application/json");
    quality > 0.0
        && !ranges.iter().enumerate().any(|(other, range)| is_json(range.0) && is_preferred(other, *range))
}

/// A media range and its weight.
fn range(text: &str) -> (&str, f32) {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    (name, weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0)))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_stream_is_for_those_who_name_it_and_prefer_nothing_else() {
        let wants = |accept: &'static str| {
            wants_stream(&HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]))
        };
        for stream in [
            "text/event-stream",
            "Text/Event-Stream; charset=utf-8",
            "text/event-stream, */*",
            "text/event-stream, application/json",
            "application/json;q=0.5, text/event-stream",
        ] {
            assert!(wants(stream), "{stream}");
        }
        for document in [
            "*/*",
            "text/*",
            "application/json",
            "application/json, text/event-stream",
            "text/event-stream;q=0.1, application/json",
            "text/event-stream;q=0",
        ] {
            assert!(!wants(document), "{document}");
        }
        assert!(!wants_stream(&HeaderMap::new()));
    }
}
