#!/bin/sh
# Makes ca.crt, ca.key, tls.crt and tls.key in the current folder, good for a year. Needs openssl.
set -eu
umask 077
name=graphgate-admission.graphgate.svc
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1825 \
    -keyout ca.key -out ca.crt -subj "/CN=graphgate-authority" \
    -addext "basicConstraints=critical,CA:true" -addext "keyUsage=critical,keyCertSign,cRLSign" 2>/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
    -keyout tls.key -out tls.csr -subj "/CN=$name" -addext "subjectAltName=DNS:$name" 2>/dev/null
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -days 365 -out tls.crt -copy_extensions copy 2>/dev/null
rm tls.csr
echo "ca.crt ca.key tls.crt tls.key"
