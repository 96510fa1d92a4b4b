//! Who vouches for the certificates of those who are called.

use std::{fmt, sync::Arc};

use rustls::{RootCertStore, pki_types::CertificateDer};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// Mozilla's list, and whom the operator adds.
#[derive(Clone, Default)]
pub struct Authorities(Option<Arc<Vec<Certificate<'static>>>>);

/// The text holds no certificates, or one that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnfitAuthorities {
    #[error("holds no certificate in PEM (-----BEGIN CERTIFICATE-----)")]
    Empty,
    #[error("is no PEM file: {0}")]
    NoPem(String),
    #[error("holds a certificate that cannot be read, the {0}. of the file: {1}")]
    Unreadable(usize, String),
}

impl Authorities {
    /// Those of a file of PEM beside Mozilla's. What else is in the file is not looked at.
    pub fn with(pem: &[u8]) -> Result<Self, UnfitAuthorities> {
        let mut added = Vec::new();
        for item in parse_pem(pem) {
            if let PemItem::Certificate(one) =
                item.map_err(|error| UnfitAuthorities::NoPem(error.to_string()))?
            {
                added.push(one);
            }
        }
        if added.is_empty() {
            return Err(UnfitAuthorities::Empty);
        }
        // The client would leave out silently what it cannot read.
        for (index, one) in added.iter().enumerate() {
            let read = RootCertStore::empty().add(CertificateDer::from(one.der()));
            read.map_err(|error| UnfitAuthorities::Unreadable(index + 1, error.to_string()))?;
        }
        let public = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
        added.extend(public.map(|one| Certificate::from_der(one.as_ref()).to_owned()));
        Ok(Self(Some(Arc::new(added))))
    }

    /// What the HTTP client is told.
    pub fn tls(&self) -> TlsConfig {
        let roots = self.0.as_ref().map_or(RootCerts::WebPki, |all| RootCerts::Specific(Arc::clone(all)));
        TlsConfig::builder().root_certs(roots).build()
    }
}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Authorities").field(&self.0.as_ref().map_or(0, |all| all.len())).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_to_hold_certificates_that_can_be_read() {
        let with = |text: &str| Authorities::with(text.as_bytes()).map(drop);
        assert_eq!(with(""), Err(UnfitAuthorities::Empty));
        assert_eq!(with("a certificate"), Err(UnfitAuthorities::Empty));
        let odd = "-----BEGIN CERTIFICATE-----\naHVudGVyMg==\n-----END CERTIFICATE-----\n";
        assert!(matches!(with(odd), Err(UnfitAuthorities::Unreadable(1, _))), "{:?}", with(odd));
        let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
        assert!(matches!(with(broken), Err(UnfitAuthorities::NoPem(_))), "{:?}", with(broken));
    }

    #[test]
    fn those_of_the_file_come_beside_the_public_ones() {
        let public = webpki_root_certs::TLS_SERVER_ROOT_CERTS;
        let one = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap().cert.pem();
        let all = Authorities::with(format!("{one}{one}").as_bytes()).unwrap();
        assert_eq!(format!("{all:?}"), format!("Authorities({})", public.len() + 2));
    }
}
