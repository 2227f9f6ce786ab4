--- Removes surrounding white space, in linear time also for blank text.

---@param text string
---@return string
return function(text)
  return text:find('%S') and vim.trim(text) or ''
end
