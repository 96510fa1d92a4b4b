use proptest::prelude::*;
use test_case::test_case;

use super::*;

const DIGEST: &str = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn image(text: &str) -> ImageRef {
    text.parse().unwrap()
}

#[test_case("/lustre/images/tao.sqsh", "/lustre/images/tao.sqsh" ; "a file")]
#[test_case("registry.example/nvidia/tao/tao-toolkit:6.26.3-pyt", "registry.example#nvidia/tao/tao-toolkit:6.26.3-pyt" ; "registry with slashes")]
#[test_case("registry.example#nvidia/tao/x:1", "registry.example#nvidia/tao/x:1" ; "the form of Pyxis")]
#[test_case("docker://registry.example#a/b:1", "registry.example#a/b:1" ; "the form of Enroot")]
#[test_case("docker://registry.example/a/b:1", "registry.example#a/b:1" ; "a URL with slashes")]
#[test_case("dockerd://a/b:1", "dockerd://a/b:1" ; "the daemon of the node")]
#[test_case("dockerd://registry.example#a/b:1", "dockerd://registry.example/a/b:1" ; "the daemon, as Pyxis would write it")]
#[test_case("localhost:5000/a/b:1", "localhost:5000#a/b:1" ; "a port")]
#[test_case("Registry.Example/a:1", "registry.example#a:1" ; "a host has no case")]
#[test_case("myorg/img:tag", "myorg/img:tag" ; "Docker Hub with an organisation")]
#[test_case("ubuntu", "ubuntu" ; "Docker Hub without")]
#[test_case("ubuntu:22.04", "ubuntu:22.04" ; "Docker Hub with a tag")]
#[test_case("$oauthtoken@registry.example/a/b:1", "$oauthtoken@registry.example#a/b:1" ; "a user")]
#[test_case("me@ubuntu", "me@ubuntu" ; "a user of Docker Hub")]
fn every_accepted_spelling_reaches_pyxis(text: &str, pyxis: &str) {
    assert_eq!(image(text).pyxis(), pyxis);
    assert_eq!(image(pyxis), image(text), "what we store reads back as the same image");
}

#[test_case("nvcr.io#nvidia/tao:6", "docker://nvcr.io/nvidia/tao:6" ; "a registry")]
#[test_case("user@reg.example:5000#a/b@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "docker://reg.example:5000/a/b@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" ; "a user, a port and a digest")]
#[test_case("ubuntu", "docker://ubuntu" ; "no registry")]
#[test_case("dockerd://a/b:1", "docker-daemon:a/b:1" ; "a daemon")]
#[test_case("dockerd://a", "docker-daemon:a:latest" ; "a daemon without a tag")]
#[test_case("/lustre/a.sif", "/lustre/a.sif" ; "a file")]
fn every_image_has_a_spelling_for_apptainer(text: &str, spelling: &str) {
    assert_eq!(image(text).apptainer(), spelling);
}

#[test]
fn a_digest_says_more_than_a_tag() {
    assert_eq!(image(&format!("r.io/a{DIGEST}")).pyxis(), format!("r.io#a{DIGEST}"));
    assert_eq!(image(&format!("r.io/a:1{DIGEST}")), image(&format!("r.io/a{DIGEST}")));
    assert_eq!(image(&format!("me@r.io/a{DIGEST}")).pyxis(), format!("me@r.io#a{DIGEST}"));
}

#[test_case("registry.example/a:1", "docker://registry.example#a:1")]
#[test_case("docker://registry.example#a:1", "docker://registry.example#a:1" ; "a URL already")]
#[test_case("myorg/img:tag", "docker://myorg/img:tag" ; "an organisation is no registry")]
#[test_case("dockerd://a:1", "dockerd://a:1" ; "the daemon")]
fn enroot_imports(text: &str, uri: &str) {
    assert_eq!(image(text).enroot(), uri);
}

#[test_case("myorg#img:1", "myorg/img:1" ; "a registry and an organisation of one name")]
#[test_case("a/b:c", "a/b-c" ; "a tag")]
#[test_case("a/b:c", "a_b/c" ; "a tag and another slash")]
#[test_case("a/b_c", "a/b/c" ; "a slash and an underscore")]
#[test_case("r.io/a:5_b", "r.io:5/a_b" ; "a port and a tag")]
#[test_case("img", "img:latest" ; "no tag and latest")]
#[test_case("img:1", "dockerd://img:1" ; "a registry and a daemon")]
fn two_images_never_share_a_file(one: &str, other: &str) {
    assert_ne!(image(one).cache_file_name(), image(other).cache_file_name());
}

#[test_case("img", true)]
#[test_case("r.io/a:latest", true ; "said")]
#[test_case("r.io/a:latest-gpu", false ; "only its beginning")]
#[test_case("/lustre/latest.sqsh", false ; "a file")]
fn a_tag_that_moves_is_told(text: &str, latest: bool) {
    assert_eq!(image(text).is_latest(), latest);
}

#[test_case("" ; "nothing")]
#[test_case("a b" ; "a space")]
#[test_case("x:1,/etc:/etc" ; "a mount smuggled in")]
#[test_case("--container-image=x" ; "an option")]
#[test_case("reg.io#a\n#SBATCH --uid=0" ; "a newline")]
#[test_case("/lustre/../etc/shadow" ; "a path that climbs")]
#[test_case("x@sha256:abc" ; "a short digest")]
#[test_case("reg.io#A/B" ; "capitals")]
#[test_case("a#b#c" ; "two registries")]
#[test_case("reg.io:+80/a" ; "a port with a sign")]
#[test_case("reg.io:99999/a" ; "a port too high")]
#[test_case("-u@reg.io/a" ; "a user that looks like an option")]
#[test_case("$(id)@reg.io/a" ; "a user that would be run")]
#[test_case("docker://docker://a" ; "a scheme twice")]
#[test_case("oci://a" ; "another scheme")]
fn a_text_that_is_no_image_is_refused(text: &str) {
    assert!(text.parse::<ImageRef>().is_err());
}

/// Texts that are images, or nearly.
fn spellings() -> impl Strategy<Value = String> {
    let part = "[a-z0-9][a-z0-9._-]{0,12}";
    (
        proptest::option::of("(docker|dockerd)://"),
        proptest::option::of("[$]?[a-z]{1,6}@"),
        proptest::option::of("[a-zA-Z0-9.-]{1,12}(:[0-9]{1,5})?[#/]"),
        proptest::collection::vec(part, 1..5),
        proptest::option::of("(:[A-Za-z0-9._-]{1,12}|@sha256:[0-9a-f]{64})"),
    )
        .prop_map(|(scheme, user, host, parts, version)| {
            let [scheme, user, host, version] = [scheme, user, host, version].map(Option::unwrap_or_default);
            format!("{scheme}{user}{host}{}{version}", parts.join("/"))
        })
}

proptest! {
    #[test]
    fn what_is_shown_reads_back(text in spellings()) {
        if let Ok(image) = text.parse::<ImageRef>() {
            prop_assert_eq!(image.pyxis().parse::<ImageRef>().unwrap(), image.clone());
            if !matches!(image, ImageRef::File(_)) {
                prop_assert_eq!(image.enroot().parse::<ImageRef>().unwrap(), image);
            }
        }
    }

    #[test]
    fn different_images_have_different_files(one in spellings(), other in spellings()) {
        if let (Ok(one), Ok(other)) = (one.parse::<ImageRef>(), other.parse::<ImageRef>()) {
            prop_assert_eq!(one == other, one.cache_file_name() == other.cache_file_name());
        }
    }

    #[test]
    fn what_parses_is_safe_where_it_stands(text in "[ -~\n\té]{0,40}") {
        if let Ok(image) = text.parse::<ImageRef>() {
            let shown = image.pyxis();
            prop_assert!(!shown.starts_with('-') && !shown.contains(char::is_control), "{}", shown);
            if !matches!(image, ImageRef::File(_)) {
                let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@#$".contains(c);
                prop_assert!(shown.chars().all(plain), "{}", shown);
            }
            let file = image.cache_file_name();
            prop_assert!(!file.contains('/') && file.len() <= 200, "{}", file);
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        let _ = text.parse::<ImageRef>();
    }
}

#[test]
fn a_long_name_has_a_short_file_of_its_own() {
    let long = |end: &str| image(&format!("{}.example/{}/{end}", "h".repeat(60), "r".repeat(200)));
    let (one, other) = (long("a").cache_file_name(), long("b").cache_file_name());
    assert!(one.len() < 200 && one != other, "{one} {other}");
}

#[test]
fn a_daemons_name_is_no_longer_written_out_than_in_parts() {
    let name = "a".repeat(251);
    assert!(format!("dockerd://host#{}", &name[..240]).parse::<ImageRef>().is_ok());
    assert!(
        format!("dockerd://host#{name}").parse::<ImageRef>().is_err(),
        "what is printed could not be read again"
    );
}
