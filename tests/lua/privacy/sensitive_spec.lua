-- every Neovim
local config = require('mcp-tools.config')
local glob = require('mcp-tools.files.glob')
local sensitive = require('mcp-tools.privacy.sensitive')
local t = require('helpers')

after_each(config.reset)

describe('a glob', function()
  --- Pattern, what it matches, what it does not.
  local CASES = {
    { 'a', { 'a' }, { '', 'b', 'aa', '/a' } },
    { '*', { '', 'a', 'a.b', 'é' }, { 'a/b', '/' } },
    { '*secret*', { 'secret', 'secret.txt', 'my-secret', 'xsecretx' }, { 'secre', 'secret/a' } },
    { 'a*', { 'a', 'ab' }, { 'ba', 'a/b' } },
    { 'a*b*c', { 'abc', 'axbxc', 'abbc' }, { 'acb', 'ab', 'a/bc' } },
    { '?', { 'a', 'é', '日' }, { '', 'ab', '/', 'éé' } },
    { 'x?z', { 'xyz', 'x日z' }, { 'xz', 'xyyz', 'x/z' } },
    { '**/private/*', { 'private/a', '/private/a', '/p/private/a' }, { '/p/xprivate/a', '/p/private/a/b', 'private' } },
    { '**/a', { 'a', '/a', '/x/a', 'x/y/a' }, { '/xa', '/a/x' } },
    { 'a/**', { 'a', 'a/', 'a/b', 'a/b/c' }, { 'ab', 'x/a', '' } },
    { 'a/**/b', { 'a/b', 'a/x/b', 'a/x/y/b' }, { 'ab', 'a/xb', 'a/b/c' } },
    { '**', { '', 'a', 'a/b', '/' }, {} },
    { '/etc/*.conf', { '/etc/a.conf', '/etc/.conf' }, { 'etc/a.conf', '/etc/x/a.conf', '/p/etc/a.conf' } },
    { '[a-c]x', { 'ax', 'cx' }, { 'dx', 'x', 'aax', '-x' } },
    { '[a-]x', { 'ax', '-x' }, { 'bx' } },
    { '[!a-c]x', { 'dx', 'éx' }, { 'ax', '/x', 'x' } },
    { '[^a]', { 'b' }, { 'a', '/' } },
    { '[]]', { ']' }, { '[' } },
    { '[é]', { 'é' }, { 'e', '' } },
    { '[%w]', { '%', 'w' }, { 'a', 'x' } },
    { '{a,b}', { 'a', 'b' }, { 'c', 'ab', '', '{a,b}' } },
    { 'x{,y}z', { 'xz', 'xyz' }, { 'xyyz' } },
    { '*.{k,p{e,g}m}', { '.k', 'a.pem', 'a.pgm' }, { 'a.pm', 'a.em' } },
    { '{a/**,b}', { 'a', 'a/x/y', 'b' }, { 'b/x', 'ax' } },
    { 'x/{**/a,b}', { 'x/a', 'x/y/a', 'x/b' }, { 'x/y/b' } },
    { '{a', { '{a' }, { 'a' } },
    { '{a,b', { '{a,b' }, { 'a', 'b' } },
    { '{{a,b}', { '{a', '{b' }, { 'a', '{{a,b}' } },
    { 'a}b,c', { 'a}b,c' }, { 'ab' } },
    { '[a', { '[a' }, { 'a' } },
    { '\\*\\?\\{', { '*?{' }, { 'a?{', '\\*?{' } },
    { 'a.b-c+d(e)%f$', { 'a.b-c+d(e)%f$' }, { 'axb-c+d(e)%f$' } },
    { '', { '' }, { 'a' } },
  }

  it('has the same meaning in every Neovim', function()
    for _, case in ipairs(CASES) do
      local matches = glob.compile(case[1])
      for i, expected in ipairs({ true, false }) do
        for _, text in ipairs(case[i + 1]) do
          t.eq({ case[1], text, expected }, { case[1], text, matches(text) })
        end
      end
    end
  end)

  it('is matched in linear time', function()
    for _, case in ipairs({
      { ('*a'):rep(20) .. 'b', ('a'):rep(4096) },
      { ('**/a/'):rep(20) .. 'b', ('a/'):rep(2048) },
      { ('{a,a}'):rep(20) .. 'b', ('a'):rep(4096) },
      { ('{a*,*a}'):rep(20) .. 'b', ('a'):rep(4096) },
      { ('{'):rep(2000), ('{'):rep(2000) },
      { ('{[}]'):rep(500), ('{'):rep(500) },
      { ('{a,'):rep(500), 'x' },
      { ('{'):rep(500) .. ('}'):rep(500), 'x' },
    }) do
      t.fast(function() glob.compile(case[1])(case[2]) end)
    end
  end)
end)

describe('sensitive files', function()
  local function expect(expected, list)
    for _, path in ipairs(list) do
      t.eq({ path, expected }, { path, sensitive.is_sensitive(path) })
    end
  end

  local function words(text) return vim.split(vim.trim(text), '%s+') end

  it('are those that usually contain secrets', function()
    local paths = [[
      /p/.env /p/.ENV /p/.env.local /p/prod.env /p/.envrc /p/a.pem /p/a.ppk /p/a.jks /p/notes.gpg /p/id_ed25519_sk
      /p/credentials.json /p/application_default_credentials.json /p/secrets.yml /p/secrets.yaml /p/.vault-token
      /p/terraform.tfstate /p/terraform.tfvars /p/prod.auto.tfvars.json /p/secrets.json /p/service-account.json
      /p/service-account-prod.json /p/.env-prod /p/.dev.vars /p/.dockercfg /p/.yarnrc.yml /p/.vault_pass
      /p/.vault_pass.txt /h/.my.cnf /h/.authinfo /h/.authinfo.gpg /h/.cargo/credentials /h/.cargo/credentials.toml
      /h/.gem/credentials /h/.m2/settings.xml /h/.bash_history /h/.zsh_history /h/.zhistory /h/.histfile
      /h/.python_history /h/.node_repl_history /h/.local/share/fish/fish_history /p/kubeconfig /h/.aws/config
      /h/.aws/credentials /h/.docker/config.json /h/.kube/config /h/.config/gh/hosts.yml /h/.ssh/known_hosts
      /p/.env_prod /p/.envrc.local /p/work_rsa /p/ci_ed25519 /etc/ssh/ssh_host_ecdsa_key /p/deploy_key /p/AuthKey_1.p8
      /h/.mylogin.cnf /h/.s3cfg /h/.msmtprc /p/.sentryclirc /p/client_secret_12-a.apps.googleusercontent.com.json
      /p/service_account.json /p/.streamlit/secrets.toml /p/kubeconfig.yaml /h/.config/rclone/rclone.conf
      /h/.azure/accessTokens.json /h/.config/gcloud/credentials.db /p/.vscode/sftp.json /p/.mcp.json
      /p/.cursor/mcp.json /p/.vscode/mcp.json /h/.claude.json /p/app-firebase-adminsdk-x1.json /p/local.settings.json
      /p/appsettings.Production.json /h/.codex/auth.json /h/.gemini/oauth_creds.json /p/office.ovpn /h/.databrickscfg
      /h/.ssh
    ]]
    expect(true, words(paths))
  end)

  it('are those of version control', function()
    local paths = [[
      /p/.git /p/.git/config /p/.git/objects/ab/cdef /p/sub/.git/HEAD /p/.git/modules/x/config
      /p/.hg/store/data/_env.i /p/.jj/repo /p/.svn/pristine/ab/cd.svn-base /p/.bzr/branch
    ]]
    expect(true, words(paths))
    expect(false, { '/p/.gitignore', '/p/.gitattributes', '/p/.github/x.yml', '/p/git/config', '/p/x.git.lua' })
  end)

  it('are copies of such files', function()
    local paths = [[
      /p/.env~ /p/..env.swp /p/..env.swo /p/..env.un~ /p/id_rsa~ /p/id_rsa.bak /p/id_rsa.old /p/id_rsa.1
      /p/.id_rsa.swp /p/#id_rsa# /p/.#id_rsa /p/server.key.bak /p/server.key.~2~ /p/server.key.bak~
      /p/terraform.tfstate.backup /h/.aws/credentials.bak /h/.aws/.credentials.swp /h/state/swap/%home%me%p%.env.swp
      /h/state/undo/%home%me%p%.env /h/state/backup/%home%me%.aws%credentials~ /h/state/undo/%home%me%.ssh%config
    ]]
    expect(true, words(paths))
    local more = [[
      /p/.env~1 /p/id_rsa~2 /p/.env,v /p/..env.kate-swp /p/.id_rsa.kate-swp /p/id_rsa.bak2 /p/id_rsa_bak /p/id_rsa-old
      /p/server.key_backup /p/prod.env.local /p/prod.env.production.bak /p/id_rsa.txt /p/server.key.txt /p/.env.txt
    ]]
    expect(true, words(more))
    expect(true, {
      '/p/id_rsa copy',
      '/p/id_rsa (copy)',
      '/p/.env - Copy',
      '/p/.env - Copy (2)',
      '/p/.netrc - Copy.bak',
      '/p/Copy of .netrc',
    })
    expect(false, {
      '/p/a.lua~',
      '/p/a.lua~1',
      '/p/a.lua,v',
      '/p/notes - Copy',
      '/p/Copy of a.txt',
      '/p/.a.lua.swp',
      '/p/keys.lua.bak',
      '/p/100%',
      '/p/~',
      '/p/.swp',
      '/p/1',
    })
  end)

  it('are not ordinary ones', function()
    local paths = [[
      /p/environment.txt /p/id_rsa_test.go /p/id_rsa.pub /p/id_rsa.pub.txt /p/app.env.ts /p/vite-env.d.ts
      /p/messages_sk.txt /p/public.txt
      /p/environment.lua /p/env /p/key.lua /p/tokens.md /p/secrets.lua /p/hosts.yml /p/config.json /p/config
      /p/settings.xml /p/credentials/index.lua /p/order_history /p/service.json /p/variables.tf /p/task /
    ]]
    expect(false, words(paths))
    expect(false, { '' })
  end)

  it('match patterns of each form', function()
    local patterns = '*secret* **/private/* conf/db.yml /srv/x* keep/ ~/own.txt A{1,2} x?z **/deep/*.txt'
    config.setup({ sensitive = { patterns = vim.split(patterns, ' ') } })
    local yes =
      '/p/secret.txt /p/my-secret /p/SECRET /p/private/a /p/conf/db.yml conf/db.yml /srv/xy /p/keep/a/b /p/keep'
    expect(true, vim.split(yes .. ' /p/a2 /p/a1~ /p/xyz /p/deep/a.txt', ' '))
    expect(true, { vim.uv.os_homedir() .. '/own.txt' })
    local no = '/p/xprivate/a /p/xconf/db.yml /p/srv/xy /p/own.txt /p/a3 /p/.env /p/xyzz /p/deep/a/b.txt'
    expect(false, vim.split(no, ' '))
  end)
end)
