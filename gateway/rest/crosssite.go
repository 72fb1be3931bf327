package rest

import "net/http"

// RefuseCrossSite returns a handler that answers 403 to a request that changes something, if a browser sent it for a page
// of another site: the browser adds the user's certificate or session without asking. Browsers mark such requests by the
// header Sec-Fetch-Site or Origin, which pages cannot remove. Programs send neither, so the media type of the body is not
// restricted.
func RefuseCrossSite(handler http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		AnswerProblem(w, http.StatusForbidden, CrossSiteRequest())
	}))
	return protection.Handler(handler)
}
