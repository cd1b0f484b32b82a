import "reflect-metadata";
import { createHash, randomBytes, webcrypto } from "node:crypto";
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  Pkcs10CertificateRequest,
  Pkcs10CertificateRequestGenerator,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";

/** Certificates of the platform's own authority (ECDSA P-256). All keys and certificates are PEM text. */
export interface KeyPair {
  readonly privateKey: string;
  readonly certificate: string;
}

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const yearMs = 365 * 24 * 60 * 60 * 1000;
const validityMs = 10 * yearMs;
const clockSkewMs = 60 * 60 * 1000;

/** A new authority. Its private key never leaves the control's store. */
export async function createAuthority(): Promise<KeyPair> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: serialNumber(),
      name: "CN=dsec authority",
      ...validity(),
      keys,
      signingAlgorithm: algorithm,
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      ],
    },
    webcrypto,
  );
  return { privateKey: await exportPrivateKey(keys.privateKey), certificate: certificate.toString("pem") };
}

/** A key and a request to sign it, for `commonName`. The private key stays with the caller. */
export async function createRequest(commonName: string): Promise<{ privateKey: string; request: string }> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const request = await Pkcs10CertificateRequestGenerator.create(
    { name: `CN=${commonName}`, keys, signingAlgorithm: algorithm },
    webcrypto,
  );
  return { privateKey: await exportPrivateKey(keys.privateKey), request: request.toString("pem") };
}

/**
 * Signs a request. Names and usage are the authority's decision: what the request says of itself is ignored, only its key
 * is taken, after proof that the requester holds it.
 */
export async function signRequest(
  authority: KeyPair,
  request: string,
  options: { readonly commonName: string; readonly hosts: readonly string[] },
): Promise<string> {
  const parsed = new Pkcs10CertificateRequest(request);
  if (!(await parsed.verify(webcrypto))) throw new Error("the certificate request is not signed by its key");
  const issuer = new X509Certificate(authority.certificate);
  const certificate = await X509CertificateGenerator.create(
    {
      serialNumber: serialNumber(),
      subject: `CN=${options.commonName}`,
      issuer: issuer.subject,
      ...validity(),
      publicKey: parsed.publicKey,
      signingKey: await importPrivateKey(authority.privateKey),
      signingAlgorithm: algorithm,
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
        new SubjectAlternativeNameExtension(options.hosts.map(hostName)),
      ],
    },
    webcrypto,
  );
  return certificate.toString("pem");
}

/** SHA-256 of the certificate's DER form, 64 hexadecimal digits. */
export function fingerprint(certificate: string): string {
  return createHash("sha256")
    .update(Buffer.from(new X509Certificate(certificate).rawData))
    .digest("hex");
}

function hostName(host: string): { type: "ip" | "dns"; value: string } {
  return { type: /^[0-9.]+$|:/.test(host) ? "ip" : "dns", value: host };
}

function validity(): { notBefore: Date; notAfter: Date } {
  const now = Date.now();
  return { notBefore: new Date(now - clockSkewMs), notAfter: new Date(now + validityMs) };
}

function serialNumber(): string {
  return `01${randomBytes(15).toString("hex")}`;
}

async function exportPrivateKey(key: webcrypto.CryptoKey): Promise<string> {
  const bytes = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", key)).toString("base64");
  const lines = bytes.match(/.{1,64}/g) ?? [];
  return `-----BEGIN PRIVATE KEY-----\n${lines.join("\n")}\n-----END PRIVATE KEY-----\n`;
}

async function importPrivateKey(pem: string): Promise<webcrypto.CryptoKey> {
  const bytes = Buffer.from(pem.replaceAll(/-----[A-Z ]+-----|\s/g, ""), "base64");
  return await webcrypto.subtle.importKey("pkcs8", bytes, algorithm, true, ["sign"]);
}
