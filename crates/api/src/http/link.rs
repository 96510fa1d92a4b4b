//! Links to the next page (RFC 8288).

use axum::http::{HeaderName, HeaderValue, Uri, header};

/// The header `Link` of an answer; none on the last page.
pub(crate) type Link = Option<[(HeaderName, HeaderValue); 1]>;

/// The same request with another page parameter.
pub(crate) fn next(uri: &Uri, parameter: &str, value: &str) -> Link {
    HeaderValue::from_str(&text(uri, parameter, value)).ok().map(|link| [(header::LINK, link)])
}

fn text(uri: &Uri, parameter: &str, value: &str) -> String {
    let pairs = uri.query().unwrap_or_default().split('&');
    let is_other = |pair: &&str| !pair.is_empty() && pair.split('=').next() != Some(parameter);
    let mut pairs: Vec<&str> = pairs.filter(is_other).collect();
    let page = format!("{parameter}={value}");
    pairs.push(&page);
    format!("<{}?{}>; rel=\"next\"", uri.path(), pairs.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_keeps_the_filters_and_replaces_the_place() {
        let next = |uri: &'static str| text(&Uri::from_static(uri), "page_token", "T");
        assert_eq!(next("/jobs"), r#"</jobs?page_token=T>; rel="next""#);
        assert_eq!(
            next("/jobs?label=a%3Ab&page_token=S&limit=2"),
            r#"</jobs?label=a%3Ab&limit=2&page_token=T>; rel="next""#
        );
    }
}
