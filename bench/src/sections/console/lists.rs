//! The list of jobs, as a page and as the call of the API behind it.

use crate::{Bench, browser::Browser, row::Row, service::Service};

/// The fields that the page counts.
const COUNTED: &str = "limit=50&facets=status,cluster,owner,partition,rule";

pub(super) fn measure(
    bench: &Bench,
    service: &Service<'_>,
    browser: &Browser,
    rows: &mut Vec<Row>,
) -> anyhow::Result<()> {
    let filters = [
        ("newest 50", ""),
        ("a search that many jobs match", "q=llama"),
        ("a search that no job matches", "q=nowhere-to-be-found"),
        ("failed jobs by rule", "status=Error&rule=cuda-out-of-memory"),
        ("jobs of a label", "label=team:vision"),
        ("jobs of an owner, last finished first", "owner=ana&sort=-finished_at"),
    ];
    for (what, query) in filters {
        bench.say(what);
        let page = format!("/ui/jobs?{query}");
        let row = super::asked(&format!("page of jobs, {what}"), || Ok(browser.page(&page)?.len()))?;
        rows.push(row.at_most(100.0));
        let call = format!("/jobs?{COUNTED}&{query}");
        let get = |call: &str| {
            let answer = service.http.get(call)?;
            answer.ok()?;
            Ok(answer.text.len())
        };
        rows.push(super::asked(&format!("`GET /jobs` with facets, {what}"), || get(&call))?.at_most(100.0));
        let call = format!("/jobs?limit=50&{query}");
        rows.push(super::asked(&format!("`GET /jobs`, {what}"), || get(&call))?);
    }
    Ok(())
}
