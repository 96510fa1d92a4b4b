//! Slurm's compressed node lists.

use crate::number::digits;

/// The most nodes of an expanded list: those of the largest job that this service accepts.
const MOST: usize = 1024;

/// Expands `node[01-03,05],gpu7` to `node01`, `node02`, `node03`, `node05`, `gpu7`.
///
/// A part that is malformed, or would make the list too long, stays as it is.
pub fn expand(list: &str) -> Vec<String> {
    let mut nodes = Vec::new();
    for part in split(list) {
        // squeue's texts for a job without nodes, in several versions.
        if matches!(part, "" | "(null)" | "None" | "None assigned") {
            continue;
        }
        match expand_part(part, MOST.saturating_sub(nodes.len())) {
            Some(names) => nodes.extend(names),
            None => nodes.push(part.to_owned()),
        }
    }
    nodes
}

/// The parts between commas outside of brackets.
fn split(list: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    list.split(|c: char| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .collect()
}

/// Expands one part with any number of brackets, such as `rack[1-2]node[01-08]`.
fn expand_part(part: &str, room: usize) -> Option<Vec<String>> {
    let mut names = vec![String::new()];
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('[') {
        let (inside, behind) = after.split_once(']')?;
        if before.contains(']') {
            return None;
        }
        let numbers = numbers(inside, room)?;
        if names.len().checked_mul(numbers.len())? > room {
            return None;
        }
        names = names
            .iter()
            .flat_map(|name| numbers.iter().map(move |number| format!("{name}{before}{number}")))
            .collect();
        rest = behind;
    }
    if rest.contains(']') || room == 0 {
        return None;
    }
    for name in &mut names {
        name.push_str(rest);
    }
    Some(names)
}

/// Expands `01-03,05`. Numbers keep the width of the first in their range.
fn numbers(inside: &str, room: usize) -> Option<Vec<String>> {
    let mut found = Vec::new();
    for range in inside.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (from, to): (u64, u64) = (digits(first, 18)?, digits(last, 18)?);
        let count = usize::try_from(to.checked_sub(from)?).ok()?;
        if found.len() + count >= room {
            return None;
        }
        let width = first.len();
        found.extend((from..=to).map(|n| format!("{n:0width$}")));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn expands(list: &str, nodes: &[&str]) {
        assert_eq!(expand(list), nodes, "{list}");
    }

    #[test]
    fn ranges_keep_their_zeros_and_their_order() {
        expands("node7", &["node7"]);
        expands("node[01-03,05],gpu7", &["node01", "node02", "node03", "node05", "gpu7"]);
        expands("node[9-11]", &["node9", "node10", "node11"]);
        expands("n[099-101]", &["n099", "n100", "n101"]);
    }

    #[test]
    fn several_brackets_multiply_and_a_suffix_stays() {
        expands("r[1-2]n[1-2]-ib", &["r1n1-ib", "r1n2-ib", "r2n1-ib", "r2n2-ib"]);
    }

    #[test]
    fn no_nodes_are_an_empty_list() {
        expands("", &[]);
        expands("(null)", &[]);
        expands("None assigned", &[]);
    }

    #[test]
    fn what_cannot_be_read_stays_as_it_was() {
        for odd in ["n[", "n]", "n[]", "n[1-", "n[3-1]", "n[a-b]", "n[1-99999999999999999999]", "n[[1-2]]"] {
            assert_eq!(expand(odd), [odd], "{odd}");
        }
    }

    #[test]
    fn a_list_is_never_longer_than_the_largest_job() {
        expands("n[0-999999999]", &["n[0-999999999]"]);
        expands("r[1-1000]n[1-1000]", &["r[1-1000]n[1-1000]"]);
        assert_eq!(expand("n[1-1024]").len(), 1024);
        assert_eq!(expand("n[1-1020],m[1-8]"), {
            let mut nodes: Vec<String> = (1..=1020).map(|n| format!("n{n}")).collect();
            nodes.push("m[1-8]".to_owned());
            nodes
        });
    }
}
