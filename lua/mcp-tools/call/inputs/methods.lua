--- What each method that a client can be asked needs of it, and what its answer must look like.
---
--- Receives: declared capabilities; answers. Sends: what is missing, what is wrong; nil when all is well.
--- Does not know about: calls, questions, how a client is reached.

local ACTIONS = { accept = true, decline = true, cancel = true }

---@param declared any
---@return table?
local function known(declared)
  return type(declared) == 'table' and declared or nil
end

--- What is wrong with what a model has said: one block, or a list of them.
---@param content any
---@return string?
local function content_fault(content)
  if type(content) ~= 'table' then
    return 'content: is missing'
  end
  local list = vim.islist(content)
  for i, block in ipairs(list and content or { content }) do
    local field = list and ('content[%d]'):format(i - 1) or 'content'
    if type(block) ~= 'table' or type(block.type) ~= 'string' then
      return field .. '.type: must be a string'
    elseif block.type == 'text' and type(block.text) ~= 'string' then
      return field .. '.text: must be a string'
    end
  end
end

---@class mcp-tools.InputMethod
---@field missing? fun(capabilities: table, params: table): table? capabilities that the client would have to declare
---@field refuse? fun(params: table, call: mcp-tools.Call): mcp-tools.Error? why this client is not to be asked that
---@field fault fun(result: table, call: mcp-tools.Call): string?, mcp-tools.ErrorCode? what is wrong with an answer

--- What each method needs of the client, and what an answer must look like.
---@type table<string, mcp-tools.InputMethod>
return {
  ['elicitation/create'] = {
    missing = function(capabilities, params)
      local has = known(capabilities.elicitation)
      local mode = params.mode or 'form'
      -- Clients that declare no mode are older than modes: they have forms.
      if has and (has[mode] or (mode == 'form' and not has.url)) then
        return nil
      end
      return { elicitation = mode == 'form' and vim.empty_dict() or { [mode] = vim.empty_dict() } }
    end,
    fault = function(result)
      if not ACTIONS[result.action] then
        return 'action: must be accept, decline or cancel'
      end
    end,
  },
  ['sampling/createMessage'] = {
    missing = function(capabilities, params)
      local has = known(capabilities.sampling)
      if not has then
        return { sampling = vim.empty_dict() }
      elseif params.tools and not has.tools then
        return { sampling = { tools = vim.empty_dict() } }
      end
    end,
    fault = function(result)
      return content_fault(result.content)
    end,
  },
  ['roots/list'] = {
    missing = function(capabilities)
      return not known(capabilities.roots) and { roots = vim.empty_dict() } or nil
    end,
    fault = function(result)
      if type(result.roots) ~= 'table' or not vim.islist(result.roots) then
        return 'roots: must be a list'
      end
      for i, root in ipairs(result.roots) do
        if type(root) ~= 'table' or type(root.uri) ~= 'string' then
          return ('roots[%d].uri: must be a string'):format(i - 1)
        end
      end
    end,
  },
}
