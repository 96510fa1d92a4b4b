//! The CUDA version that a job uses instead of its image's own.

use super::text_type::word_type;

word_type!(
    /// A CUDA version, as in the name of its directory: `12`, `12.8` or `12.8.1`.
    CudaVersion, "CUDA version", "up to three numbers joined by dots, such as 12.8", max 14,
    |text| {
        let number = |part: &str| (1..=4).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        text.split('.').count() <= 3 && text.split('.').all(number)
    }
);

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("12")]
    #[test_case("12.8")]
    #[test_case("12.8.1")]
    fn a_version_is_taken(text: &str) {
        assert_eq!(text.parse::<CudaVersion>().unwrap().as_str(), text);
    }

    #[test_case("" ; "nothing")]
    #[test_case("12." ; "a dot too many")]
    #[test_case("12.8.1.1" ; "four numbers")]
    #[test_case("latest" ; "a word")]
    #[test_case("12/../.." ; "a path")]
    #[test_case("12;id" ; "shell")]
    #[test_case("12\n" ; "a line end")]
    fn anything_else_is_refused(text: &str) {
        assert!(text.parse::<CudaVersion>().is_err());
    }
}
