-- One message each, distinct keys.
local id = 0
local thread_id = 0
function setup(thread) thread:set("tid", thread_id); thread_id = thread_id + 1 end
function request()
  id = id + 1
  local body = string.format('{"queue":"carts","key":"w:%d:%d:%s","payload":{"order":%d,"note":"%s"}}', tid, id, run, id, string.rep("x", 900))
  return wrk.format("POST", "/v1/queue/publish", headers, body)
end
function init(args)
  run = args[1]
  headers = { ["authorization"] = "Bearer " .. args[2], ["content-type"] = "application/json" }
end
