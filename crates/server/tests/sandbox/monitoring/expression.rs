//! The metrics in a Prometheus expression, for the part of the language that our files use.

/// Operators between selectors.
const WORDS: [&str; 5] = ["and", "or", "unless", "bool", "offset"];
/// Keywords before a list of labels in parentheses.
const BEFORE_LABELS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];

/// The selectors of the expression: a metric name with its labels in braces.
pub(super) fn selectors(expression: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        match first {
            '[' => rest = after(rest, ']'),
            '0'..='9' => rest = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '.'),
            'a'..='z' | 'A'..='Z' | '_' => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                let (word, behind) = rest.split_at(end);
                rest = behind.trim_start();
                if BEFORE_LABELS.contains(&word) {
                    rest = after(rest, ')');
                } else if rest.starts_with('{') {
                    let behind = after(rest, '}');
                    found.push(format!("{word}{}", &rest[..rest.len() - behind.len()]));
                    rest = behind;
                } else if !rest.starts_with('(') && !is_aggregated(rest) && !WORDS.contains(&word) {
                    found.push(word.to_owned());
                }
            }
            _ => rest = &rest[first.len_utf8()..],
        }
    }
    found
}

/// `sum by (…)`: the previous word was a function.
fn is_aggregated(rest: &str) -> bool {
    rest.starts_with("by ") || rest.starts_with("without ")
}

/// The text after the next `end` outside of quotation marks.
fn after(text: &str, end: char) -> &str {
    let mut quoted = false;
    for (place, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            c if c == end && !quoted => return &text[place + c.len_utf8()..],
            _ => {}
        }
    }
    ""
}

#[test]
fn the_selectors_of_an_expression_are_found() {
    let expression = r#"histogram_quantile(0.9, sum by (cluster, le) (rate(a_bucket{route="/jobs/{id}", le!="1"}[30m]))) > 10
        and on (instance) max(b) >= 2.5 or vector(0) unless sum(c{x=~"5.."}) == 0"#;
    assert_eq!(selectors(expression), [r#"a_bucket{route="/jobs/{id}", le!="1"}"#, "b", r#"c{x=~"5.."}"#]);
}
