//! What a misspelled name may have meant.

/// The most letters to insert, remove, replace or swap.
const FARTHEST: usize = 2;

/// The known name that is nearest to `name`; none if none is near. Of a short name at least half must be right.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let far = |known: &&str| strsim::osa_distance(name, known);
    let is_near = |known: &&str| far(known) <= FARTHEST.min(known.len() / 2);
    // A name can be as long as a body. Every near one is about as long as a known one.
    let is_comparable = |known: &&str| name.len().abs_diff(known.len()) <= 4 * FARTHEST;
    known.into_iter().filter(is_comparable).filter(is_near).min_by_key(far)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_near_name_was_meant() {
        let known = ["command", "name", "id", "resources", "num_gpus"];
        for (name, meant) in [
            ("comand", Some("command")),
            ("cmmand", Some("command")),
            ("commandos", Some("command")),
            ("naem", Some("name")),
            ("Name", Some("name")),
            ("ids", Some("id")),
            ("ressource", Some("resources")),
            ("xy", None),
            ("gpus", None),
            ("kommandos", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), meant, "{name}");
        }
        assert_eq!(nearest(&"x".repeat(1_000_000), known), None);
    }
}
