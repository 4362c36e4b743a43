#pragma once
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

// libcurl sets options and answers questions through functions of variable arguments, which Swift does not call: one here a type.

typedef size_t (*mill_curl_receiver)(char *bytes, size_t size, size_t count, void *context);
typedef int (*mill_curl_watcher)(void *context, curl_off_t download_total, curl_off_t downloaded, curl_off_t upload_total, curl_off_t uploaded);

static inline CURLcode mill_curl_start(void) { return curl_global_init(CURL_GLOBAL_ALL); }

static inline CURLcode mill_curl_set_number(CURL *handle, CURLoption option, long value) { return curl_easy_setopt(handle, option, value); }

static inline CURLcode mill_curl_set_offset(CURL *handle, CURLoption option, curl_off_t value) { return curl_easy_setopt(handle, option, value); }

static inline CURLcode mill_curl_set_text(CURL *handle, CURLoption option, const char *value) { return curl_easy_setopt(handle, option, value); }

static inline CURLcode mill_curl_set_pointer(CURL *handle, CURLoption option, const void *value) { return curl_easy_setopt(handle, option, value); }

static inline CURLcode mill_curl_set_receiver(CURL *handle, CURLoption option, mill_curl_receiver value) { return curl_easy_setopt(handle, option, value); }

static inline CURLcode mill_curl_set_watcher(CURL *handle, mill_curl_watcher value) {
  return curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, value);
}

/// Microseconds until the first byte of the request was about to be sent; 0 when it did not come to that.
static inline curl_off_t mill_curl_micros_to_sending(CURL *handle) {
  curl_off_t value = 0;
  return curl_easy_getinfo(handle, CURLINFO_PRETRANSFER_TIME_T, &value) == CURLE_OK ? value : 0;
}
