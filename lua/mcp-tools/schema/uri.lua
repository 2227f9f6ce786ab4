--- The little of URIs that `$id` and `$ref` need: join a reference to its base.
---
--- Receives: absolute base and reference, as strings.
--- Sends: an absolute URI without fragment, and the fragment.
--- Does not know about: schemas. Nothing here is ever fetched.
---
--- Source: RFC 3986, section 5.

local M = {}

local function split(uri)
  local rest, fragment = uri:match('^([^#]*)#?(.*)$')
  local scheme, after = rest:match('^(%a[%w+.-]*):(.*)$')
  after = after or rest
  local authority, path = after:match('^//([^/?]*)(.*)$')
  path = path or after
  local bare, query = path:match('^([^?]*)(%??.*)$')
  return { scheme = scheme, authority = authority, path = bare, query = query, fragment = fragment }
end

local function without_dots(path)
  local out = {}
  local rooted = path:sub(1, 1) == '/'
  local segments = vim.split(path, '/', { plain = true })
  for i, segment in ipairs(segments) do
    if segment == '..' then
      if #out > (rooted and 1 or 0) then
        out[#out] = nil
      end
    elseif segment ~= '.' then
      out[#out + 1] = segment
    end
    if i == #segments and (segment == '.' or segment == '..') then
      out[#out + 1] = ''
    end
  end
  return table.concat(out, '/')
end

local function compose(parts)
  return (parts.scheme and parts.scheme .. ':' or '')
    .. (parts.authority and '//' .. parts.authority or '')
    .. parts.path
    .. parts.query
end

--- Resolves a reference against a base.
---@param base string without fragment; '' when the document has no name
---@param reference string
---@return string uri without fragment
---@return string fragment still percent-encoded; '' when there is none
function M.resolve(base, reference)
  local r = split(reference)
  if r.scheme then
    r.path = r.authority and without_dots(r.path) or r.path
    return compose(r), r.fragment
  end
  local b = split(base)
  r.scheme = b.scheme
  if not r.authority then
    r.authority = b.authority
    if r.path == '' then
      r.path = b.path
      r.query = r.query ~= '' and r.query or b.query
    else
      if r.path:sub(1, 1) ~= '/' then
        r.path = (b.authority and b.path == '' and '/' or b.path:match('^(.*/)') or '') .. r.path
      end
      r.path = without_dots(r.path)
    end
  end
  return compose(r), r.fragment
end

return M
