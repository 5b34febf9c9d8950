package headers

import "testing"

func TestIsOrigin(t *testing.T) {
	for text, want := range map[string]bool{
		"https://app.example.com": true, "http://localhost:3000": true, "http://[::1]:8080": true,
		"*": false, "null": false, "": false, "app.example.com": false, "https://": false, "file://host": false,
		"https://app.example.com/": false, "https://user@app.example.com": false, "https://app.example.com?a=b": false,
		"HTTPS://app.example.com": false,
	} {
		if IsOrigin(text) != want {
			t.Errorf("%q: %v, want %v", text, !want, want)
		}
	}
}

func TestIsSafeOrigin(t *testing.T) {
	for text, want := range map[string]bool{
		"https://app.example.com": true, "https://app.example.com:8443": true, "http://localhost:3000": true, "http://[::1]:8080": true, "http://127.0.0.1": true,
		"http://app.example.com": false, "http://10.0.0.1:80": false, "https://app.example.com/": false, "app.example.com": false, "": false, "http://localhost.example.com": false,
	} {
		if IsSafeOrigin(text) != want {
			t.Errorf("%q: %v, want %v", text, !want, want)
		}
	}
}
