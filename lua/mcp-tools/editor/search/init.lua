--- A search in the text of the project, as the editor has it: unsaved changes count, what the disk has does not.
---
--- Receives: a query, a place, globs; the ctx of a `run` tool.
--- Sends: per file the places where it stands, with the text that they are of; what was withheld.
--- Does not know about: how it is shown, what is done with it.

local access = require('mcp-tools.files.access')
local buffer_kind = require('mcp-tools.files.buffer_kind')
local buffers = require('mcp-tools.editor.buffer')
local candidates = require('mcp-tools.editor.search.candidates')
local contents = require('mcp-tools.editor.buffer.contents')
local files = require('mcp-tools.editor.search.files')
local matcher = require('mcp-tools.editor.search.matcher')
local paths = require('mcp-tools.files.paths')
local time_slice = require('mcp-tools.util.time_slice')

local api = vim.api

local M = {}

--- Places of one search that are counted one by one.
M.MAX_MATCHES = 100000

---@class mcp-tools.search.File
---@field path string resolved
---@field shown string
---@field bufnr integer?
---@field changedtick integer?
---@field unsaved boolean
---@field text string lines end with "\n"
---@field matches mcp-tools.search.Match[]

---@class mcp-tools.search.Found
---@field files mcp-tools.search.File[] by path
---@field total integer places
---@field passed integer files that are too large
---@field cut boolean there is more
---@field place mcp-tools.search.Place
---@field matcher mcp-tools.search.Matcher
---@field max integer places

--- Buffers below a place whose text is not what the disk has.
---@param place mcp-tools.search.Place
---@param takes fun(relative: string): boolean
---@return string[] resolved paths
local function unsaved(place, takes)
  local list = {}
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].modified and buffer_kind.is_text(bufnr) then
      local name = api.nvim_buf_get_name(bufnr)
      local path = name ~= '' and paths.resolve(name)
      local below = path and vim.startswith(path, place.path .. '/') and takes(path:sub(#place.path + 2))
      if path and (below or path == place.path) then
        table.insert(list, path)
      end
    end
  end
  return list
end

---@param found mcp-tools.search.Found
---@param file mcp-tools.search.File
---@param pause fun()
local function look(found, file, pause)
  found.matcher:each(file.text, function(match)
    table.insert(file.matches, match)
    found.total = found.total + 1
    return found.total >= found.max
  end, pause)
  if #file.matches > 0 then
    table.insert(found.files, file)
  end
end

--- Which of the candidates may be read, and from where. The others are not told: that they are candidates says what is
--- in them.
---@param ctx mcp-tools.Ctx
---@param found mcp-tools.search.Found
---@param list string[]
---@param takes fun(relative: string): boolean
---@return string[] resolved
local function judged(ctx, found, list, takes)
  local judge = files.judge(ctx, found.place)
  local out, seen, pause = {}, {}, time_slice.of(ctx)
  for _, path in ipairs(vim.list_extend(list, unsaved(found.place, takes))) do
    local resolved = not seen[path] and judge(path) or nil
    seen[path] = true
    if resolved and (resolved == path or not seen[resolved]) then
      seen[resolved] = true
      table.insert(out, resolved)
    end
    pause()
  end
  table.sort(out)
  return out
end

--- Searches.
---@param ctx mcp-tools.Ctx in a coroutine
---@param query mcp-tools.search.Query
---@param opts { path: string?, globs: string[]?, max: integer? } `max`: places, then it ends
---@return mcp-tools.search.Found?
---@return mcp-tools.Error? err
function M.find(ctx, query, opts)
  local made, err = matcher.new(query)
  local place, takes, list
  if made then
    place, err = files.place(ctx, opts.path)
  end
  if place then
    takes, err = files.matcher(opts.globs)
  end
  if takes then
    list, err = candidates.find(ctx, place, query, opts.globs)
  end
  if not (made and place and takes and list) then
    return nil, err --[[@as mcp-tools.Error]]
  end
  local found = {
    files = {},
    total = 0,
    passed = 0,
    cut = err == true,
    place = place,
    matcher = made,
    max = opts.max or M.MAX_MATCHES,
  }
  list = judged(ctx, found, list, takes)
  local pause, of_path = time_slice.of(ctx), buffers.of_paths()
  for first = 1, #list, contents.AT_ONCE do
    local chunk = vim.list_slice(list, first, first + contents.AT_ONCE - 1)
    local read = contents.of(ctx, chunk, of_path)
    for _, path in ipairs(chunk) do
      local text = read[path]
      if text and found.total < found.max then
        look(found, {
          path = path,
          shown = access.shown(path, ctx.root),
          bufnr = text.bufnr,
          changedtick = text.changedtick,
          unsaved = text.unsaved,
          text = text.text,
          matches = {},
        }, pause)
      elseif text == false then
        found.passed = found.passed + 1
      end
    end
    if found.total >= found.max then
      found.cut = true
      break
    end
    ctx:progress(math.min(first + contents.AT_ONCE - 1, #list), #list)
  end
  return found
end

return M
