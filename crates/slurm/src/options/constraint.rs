//! Features of nodes that a job needs (`--constraint`).

use std::collections::BTreeSet;

use crate::names::text_type::word_type;

word_type!(
    /// An expression over features: `a100&nvlink`, `intel|amd`, `[rack1|rack2]` or `[rack1*2&rack2*4]`.
    ///
    /// Slurm checks the grammar; this type only has feature names, their operators, and brackets that match.
    Constraint, "constraint",
    "features of A-Z a-z 0-9 _ . : = / + - with & | * and brackets, such as a100&nvlink", max 500,
    |text| {
        text.chars().all(|c| is_of_name(c) || "&|*,()[]{}".contains(c))
            && text.starts_with(|c: char| c.is_ascii_alphanumeric() || "_([".contains(c))
            && text.contains(is_of_name)
            && brackets_match(text)
    }
);

impl Constraint {
    /// The features that it names. The number after a `*` is a count of nodes.
    pub fn features(&self) -> BTreeSet<&str> {
        let mut features = BTreeSet::new();
        let mut rest = self.as_str();
        while let Some(start) = rest.find(is_of_name) {
            let is_count = rest[..start].ends_with('*');
            let word = &rest[start..];
            let end = word.find(|c| !is_of_name(c)).unwrap_or(word.len());
            if !is_count {
                features.insert(&word[..end]);
            }
            rest = &word[end..];
        }
        features
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_.:=/+-".contains(c)
}

fn brackets_match(text: &str) -> bool {
    let mut open = Vec::new();
    for c in text.chars() {
        match c {
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' if open.pop() != Some(c) => return false,
            _ => {}
        }
    }
    open.is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use test_case::test_case;

    use super::*;

    #[test_case("a100", &["a100"])]
    #[test_case("a100&nvlink", &["a100", "nvlink"])]
    #[test_case("[rack1*2&rack2*4]", &["rack1", "rack2"])]
    #[test_case("(knl&a2a)|haswell", &["a2a", "haswell", "knl"])]
    fn features_are_found(text: &str, features: &[&str]) {
        let constraint: Constraint = text.parse().unwrap();
        assert_eq!(constraint.features().into_iter().collect::<Vec<_>>(), features);
    }

    #[test_case(""; "empty")]
    #[test_case("&"; "no feature")]
    #[test_case("-x"; "an option")]
    #[test_case("a b"; "a space")]
    #[test_case("a#b"; "a comment")]
    #[test_case("[a"; "an open bracket")]
    #[test_case("(a]"; "another bracket")]
    #[test_case("a\n#SBATCH --uid=0"; "a second line")]
    fn other_texts_are_refused(text: &str) {
        assert!(text.parse::<Constraint>().is_err());
    }

    proptest! {
        #[test]
        fn what_parses_needs_no_quoting(text in "[ -~\n\t]{0,20}|[a-z0-9&|*()\\[\\]]{0,12}") {
            if let Ok(constraint) = text.parse::<Constraint>() {
                prop_assert!(!constraint.as_str().contains([' ', '\n', '\t', '#', '"', '\'', '\\', '$', '`', '%']));
                let _ = constraint.features();
            }
        }
    }
}
