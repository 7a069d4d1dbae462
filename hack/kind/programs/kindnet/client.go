package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
)

const account = "/var/run/secrets/kubernetes.io/serviceaccount/"

// client asks the API server with the pod's account.
type client struct {
	base string
	http *http.Client
}

func newClient() (*client, error) {
	authority, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%sca.crt holds no certificate", account)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	address := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	return &client{base: "https://" + address, http: &http.Client{Transport: transport}}, nil
}

// nodes lists the cluster's nodes; the token is read anew, because the kubelet renews it.
func (c *client) nodes(ctx context.Context) ([]node, error) {
	token, err := os.ReadFile(account + "token")
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/api/v1/nodes", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("Accept", "application/json")
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("listing nodes: %s: %.200s", answer.Status, text)
	}
	return parse(text)
}
